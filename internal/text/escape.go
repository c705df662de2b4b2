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
	if !strings.ContainsFunc(value, func(r rune) bool { return obeyed(0, r) }) && utf8.ValidString(value) {
		return value
	}
	return string(AppendEscaped(nil, 0, []byte(value), ""))
}

// invisible are characters without a picture of their own: two names that differ only in them look alike.
var invisible = []*unicode.RangeTable{unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}

// joining are scripts in which a joiner after a letter changes how a word is drawn.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi, unicode.Kannada, unicode.Khmer, unicode.Malayalam,
	unicode.Mongolian, unicode.Myanmar, unicode.Oriya, unicode.Sinhala, unicode.Syriac, unicode.Tamil, unicode.Telugu,
}

// obeyed reports whether a terminal or a browser does something else with r than show it. Such characters are control characters,
// separators of lines and paragraphs, characters that change the direction of the text, and invisible ones. A joiner counts unless before,
// the character in front of it, belongs to a script that needs joiners.
func obeyed(before, r rune) bool {
	const nonJoiner, joiner, emptyBraille = '\u200c', '\u200d', '\u2800'
	switch r {
	case nonJoiner, joiner:
		return !unicode.In(before, joining...)
	case '\u2028', '\u2029', emptyBraille:
		return true
	}
	return unicode.IsControl(r) || unicode.In(r, invisible...)
}

// appendUnits appends r in the form of JSON escapes; a character beyond U+FFFF becomes two surrogates.
func appendUnits(out []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		out = fmt.Appendf(out, `\u%04x`, unit)
	}
	return out
}

// AppendEscaped appends value to out, escaped except for the characters in keep. before is the character in front of value; 0 if there is none.
func AppendEscaped(out []byte, before rune, value []byte, keep string) []byte {
	for len(value) > 0 {
		r, size := utf8.DecodeRune(value)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, value[0])
		case !obeyed(before, r) || strings.ContainsRune(keep, r):
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
		value, before = value[size:], r
	}
	return out
}
