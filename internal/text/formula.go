package text

import "regexp"

// formula matches the beginning of a value that a spreadsheet would compute. In countries that write decimal commas, a spreadsheet
// splits lines at semicolons, even inside quotes. So a formula may also begin behind a semicolon, and behind blanks and quotes,
// which the spreadsheet skips.
var formula = regexp.MustCompile(`((?:^|[;\t\r\n])["\s]*)([=+\-@＝＋－＠])`)

// DisarmFormulas returns the fields of a record with an apostrophe before each formula that a spreadsheet would compute.
func DisarmFormulas(record []string) []string {
	disarmed := make([]string, len(record))
	for i, field := range record {
		disarmed[i] = formula.ReplaceAllString(field, "$1'$2")
	}
	return disarmed
}
