// Package text shortens what conditions and Events say, and makes harmless what other people have written.
package text

import "strings"

const more = "…"

// Cut shortens a text to at most n bytes, at a letter's end. n is at least 3.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(more)], "") + more
}
