// Package changes holds what the page can change: each change is a request, the command that sends the same one, and a
// permission to send it once.
package changes

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/warren-tenancy/warren/internal/text"
)

// plain matches the words that every POSIX shell reads literally.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@,+-][A-Za-z0-9_./:@,+=-]*$`)

// Quote writes a command for a POSIX shell. Characters that a page would not show, or that a terminal obeys when the
// command is pasted, are written by printf.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		switch {
		case plain.MatchString(word):
			quoted[i] = word
		case text.Escape(word) != word:
			quoted[i] = quoteByNumbers(word)
		default:
			quoted[i] = inQuotes(word)
		}
	}
	return strings.Join(quoted, " ")
}

func inQuotes(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// quoteByNumbers returns a word in which all but printable ASCII is written as octal numbers, which printf reads; if
// the word ends with a line feed, which $() would take off, the shell reads them.
func quoteByNumbers(word string) string {
	var numbers strings.Builder
	for _, b := range []byte(word) {
		if b < ' ' || b > '~' || strings.IndexByte(`\!^'`, b) >= 0 { // bash 3 replaces ! and ^ even there
			fmt.Fprintf(&numbers, `\%03o`, b)
		} else {
			numbers.WriteByte(b)
		}
	}
	if strings.HasSuffix(word, "\n") {
		return "$'" + numbers.String() + "'"
	}
	return `"$(printf -- '` + strings.ReplaceAll(numbers.String(), "%", "%%") + `')"`
}
