package sudo

import (
	"bytes"
	"io"
)

// longest is how many bytes of a line that kubectl writes are searched.
const longest = 16 << 10

// refusals403 passes on what kubectl writes to stderr, at once, and notices a 403 about impersonation: a line such as
//
//	Error from server (Forbidden): nodes is forbidden: User "bob" cannot impersonate-on:user-info:list resource "nodes" …
type refusals403 struct {
	to io.Writer
	// impersonation reports whether there was such a line.
	impersonation bool

	line []byte // the line whose end has not been written yet
}

// Write passes everything on at once, because kubectl and its helpers also ask questions on stderr.
func (r *refusals403) Write(text []byte) (int, error) {
	for part := range bytes.Lines(text) {
		r.line = append(r.line, part[:min(len(part), longest-len(r.line))]...)
		if bytes.Contains(r.line, []byte("orbidden")) && bytes.Contains(r.line, []byte("impersonate")) {
			r.impersonation = true
		}
		if part[len(part)-1] == '\n' {
			r.line = r.line[:0]
		}
	}
	return r.to.Write(text)
}
