// Package text shortens the messages of conditions and Events, writes the counts in them, and makes texts that other people have written
// harmless.
package text

import "strings"

const more = "…"

// EventBytes bounds the message of an Event, in bytes. It is the API server's bound for Events with an eventTime.
const EventBytes = 1024

// Cut shortens a text to at most n bytes, with an ellipsis at its end, without splitting a character. n must be at least 3.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len(more)], "") + more
}
