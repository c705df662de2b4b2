// Package text shortens the messages of conditions and Events, counts in them, and makes texts harmless that other people have written.
package text

import "strings"

const more = "…"

// Cut shortens a text to at most n bytes, with an ellipsis at its end, and splits no character. n must be at least 3.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(more)], "") + more
}
