package text

import "regexp"

// formula is how a value begins that a spreadsheet computes. Where lists have commas in numbers, a spreadsheet splits lines at
// semicolons, whatever the quotes say, so that a formula may also begin behind one, and behind blanks and quotes, which it leaves out.
var formula = regexp.MustCompile(`((?:^|[;\t\r\n])["\s]*)([=+\-@＝＋－＠])`)

// DisarmFormulas returns the fields of a record with an apostrophe before everything that a spreadsheet would compute.
func DisarmFormulas(record []string) []string {
	disarmed := make([]string, len(record))
	for i, field := range record {
		disarmed[i] = formula.ReplaceAllString(field, "$1'$2")
	}
	return disarmed
}
