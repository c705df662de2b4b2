package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape returns a value on one line. Characters that a terminal would obey rather than show are written as \n, \x1b or \u202e.
func Escape(value string) string {
	if !strings.ContainsFunc(value, obeyed) && utf8.ValidString(value) {
		return value
	}
	return string(AppendEscaped(nil, []byte(value), ""))
}

// unseen are characters without a picture of their own: two names that differ only in them look alike.
var unseen = []*unicode.RangeTable{unicode.Cf, unicode.Z, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// obeyed reports whether a terminal or a browser does something else with r than show it. Such characters are control characters,
// separators of lines and paragraphs, characters that change the direction of the text, and those that no one sees: joiners, spaces other
// than the usual one, the empty pattern of Braille, and the place of an embedded object.
func obeyed(r rune) bool {
	const emptyBraille, embeddedObject = '\u2800', '\ufffc'
	return r != ' ' && (unicode.IsControl(r) || unicode.In(r, unseen...) || r == emptyBraille || r == embeddedObject)
}

// appendUnits appends r in the form of JSON escapes; a character beyond U+FFFF becomes two surrogates.
func appendUnits(out []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		out = fmt.Appendf(out, `\u%04x`, unit)
	}
	return out
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
		case r < ' ': // JSON that was printed has none
			out = fmt.Appendf(out, `\x%02x`, r)
		default:
			out = appendUnits(out, r)
		}
		value = value[size:]
	}
	return out
}
