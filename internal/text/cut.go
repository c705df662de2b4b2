// Package text shortens the messages of conditions and Events, writes the counts in them, and makes texts that other people have written
// harmless.
package text

import "strings"

const more = "…"

// Cut shortens a text to at most n bytes, with an ellipsis at its end, without splitting a character. n must be at least 3.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(more)], "") + more
}
