// Package changes holds what the page can change: each change is a request, the command that sends the same one, and a permission to
// send it once.
package changes

import (
	"regexp"
	"strings"
)

// plain matches the words that every POSIX shell reads literally.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@,+-][A-Za-z0-9_./:@,+=-]*$`)

// Quote writes a command for a POSIX shell.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !plain.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
