package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns a value on one line. Characters that a terminal would obey rather than show are written as \n, \x1b or \u202e.
func Escape(value string) string {
	if !strings.ContainsFunc(value, obeyed) && utf8.ValidString(value) {
		return value
	}
	return string(AppendEscaped(nil, []byte(value), ""))
}

// obeyed reports whether a terminal does something else with r than show it: control characters, separators of lines and paragraphs,
// and characters that change the direction of the text.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff'
}

// AppendEscaped appends value to out, escaped except for the characters in keep.
func AppendEscaped(out, value []byte, keep string) []byte {
	for len(value) > 0 {
		r, size := utf8.DecodeRune(value)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, value[0])
		case !obeyed(r) || strings.ContainsRune(keep, r):
			out = append(out, value[:size]...)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r < 0x80:
			out = fmt.Appendf(out, `\x%02x`, r)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		value = value[size:]
	}
	return out
}
