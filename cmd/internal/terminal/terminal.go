// Package terminal prints what other people have written, such as the names of subjects and the messages of conditions,
// so that it can neither steer the terminal nor pass for a line of the program.
package terminal

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/warren-tenancy/warren/internal/text"
)

// Escape returns a value on one line. Each character that a terminal would obey is written as an escape, such as \n,
// \x1b or \u202e.
func Escape(value string) string { return text.Escape(value) }

// Fprintf is fmt.Fprintf with every value escaped. The format is the program's own, and is printed as it is.
func Fprintf(w io.Writer, format string, values ...any) (int, error) {
	for i, value := range values {
		values[i] = escapeValue(value)
	}
	return fmt.Fprintf(w, format, values...)
}

// Fprintln is fmt.Fprintln with every value escaped.
func Fprintln(w io.Writer, values ...any) (int, error) {
	for i, value := range values {
		values[i] = escapeValue(value)
	}
	return fmt.Fprintln(w, values...)
}

// escapeValue returns the value as escaped text. Numbers and booleans are returned unchanged, for format verbs such as %d.
func escapeValue(value any) any {
	switch v := value.(type) {
	case int, int32, int64, uint, bool, float64:
		return v
	default:
		return text.Escape(fmt.Sprint(v))
	}
}

// writer escapes all characters that a terminal obeys, except line feeds and tabs. It is the last step before a
// terminal, for text that was not written by this package's Fprintf, such as messages of libraries.
type writer struct {
	to io.Writer
	// rest is the beginning of a character whose other bytes have not come yet.
	rest []byte
}

// NewWriter returns a writer that passes text on to w, and escapes everything that a terminal obeys except line feeds
// and tabs. In JSON that a library printed, the escapes mean the same characters.
func NewWriter(w io.Writer) io.Writer { return &writer{to: w} }

// Is reports whether w writes to a terminal, directly or through a writer that NewWriter returned.
func Is(w io.Writer) bool {
	if wrapped, ok := w.(*writer); ok {
		w = wrapped.to
	}
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Write implements io.Writer.
func (w *writer) Write(written []byte) (int, error) {
	all := append(w.rest, written...)
	end := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if b := all[len(all)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(all[len(all)-i:]) {
				end = len(all) - i
			}
			break
		}
	}
	w.rest = append([]byte(nil), all[end:]...)
	if _, err := w.to.Write(text.AppendEscaped(nil, all[:end], "\n\t")); err != nil {
		return 0, err
	}
	return len(written), nil
}
