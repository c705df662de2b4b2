// Package changes holds what the page can change: each change is a request, the command that sends the same one, and a permission to
// send it once.
package changes

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/warren-tenancy/warren/internal/text"
)

// plain matches the words that every POSIX shell reads literally.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@,+-][A-Za-z0-9_./:@,+=-]*$`)

// Quote writes a command for a POSIX shell. Characters that a page would not show, or that a terminal obeys when the command is pasted, are
// written by printf.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		switch {
		case plain.MatchString(word):
			quoted[i] = word
		case text.Escape(word) != word:
			quoted[i] = `"$(printf -- ` + inQuotes(printfFormat(word)) + `)"`
			if strings.HasSuffix(word, "\n") { // $() would take it off
				quoted[i] = "$" + inQuotes(printfFormat(word))
			}
		default:
			quoted[i] = inQuotes(word)
		}
	}
	return strings.Join(quoted, " ")
}

func inQuotes(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// printfFormat returns the format by which printf prints word. All but printable ASCII is written as octal numbers.
func printfFormat(word string) string {
	var format strings.Builder
	for _, b := range []byte(word) {
		switch {
		case b == '%':
			format.WriteString("%%")
		case b < ' ', b > '~', strings.IndexByte(`\!^'`, b) >= 0: // bash 3 replaces ! and ^ even there
			fmt.Fprintf(&format, `\%03o`, b)
		default:
			format.WriteByte(b)
		}
	}
	return format.String()
}
