package terminal

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// SEC-X30: characters that a terminal would obey, such as escape sequences, are shown as text.
func TestEscape(t *testing.T) {
	cases := map[string]struct{ value, want string }{
		"plain":               {"payments: grüße, 日本, [s] <none> \\", "payments: grüße, 日本, [s] <none> \\"},
		"a colour":            {"\x1b[31mred", `\x1b[31mred`},
		"a title":             {"\x1b]0;x\a", `\x1b]0;x\x07`},
		"an 8-bit CSI":        {"\u009b31m", `\u009b31m`},
		"a raw byte":          {"\x9b31m", `\x9b31m`},
		"a forged line":       {"eve\nUser  admin", `eve\nUser  admin`},
		"a forged column":     {"eve\tyes", `eve\tyes`},
		"an overwritten line": {"eve\rmia", `eve\rmia`},
		"deleted characters":  {"eve\b\b\b\x7f", `eve\x08\x08\x08\u007f`},
		"a turned text":       {"a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`},
		"other line ends":     {"a\u0085b\u2028c\u2029d", `a\u0085b\u2028c\u2029d`},
		"a byte order mark":   {"\ufeffa", `\ufeffa`},
		"joiners":             {"क्\u200dष bob\u200c", `क्\u200dष bob\u200c`},
		"look-alikes":         {"bob\ufe0f\u034f\U000e0100", `bob\ufe0f\u034f\udb40\udd00`},
		"other spaces":        {"a\u00a0b\u2009c\u3000d", `a\u00a0b\u2009c\u3000d`},
		"empty characters":    {"\u3164\u115f\u2800\ufffc", `\u3164\u115f\u2800\ufffc`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Escape(c.value); got != c.want {
				t.Errorf("Escape: got %q, want %q", got, c.want)
			}
			var out strings.Builder
			_, _ = Fprintf(&out, "<%s>\n", c.value)
			if got := out.String(); got != "<"+c.want+">\n" {
				t.Errorf("Fprintf: got %q", got)
			}
			out.Reset()
			if _, err := Fprintln(&out, errors.New(c.value), 1); err != nil || out.String() != c.want+" 1\n" {
				t.Errorf("Fprintln: got %q, %v", out.String(), err)
			}
			out.Reset()
			w := NewWriter(&out)
			for i := range len(c.value) { // byte by byte, as a library may write
				if n, err := w.Write([]byte(c.value[i : i+1])); n != 1 || err != nil {
					t.Fatalf("Write: %d, %v", n, err)
				}
			}
			want := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(c.want)
			if c.value == "\x9b31m" {
				want = c.want
			}
			if got := out.String(); got != want {
				t.Errorf("Writer: got %q, want %q", got, want)
			}
		})
	}
}

// SEC-X38: JSON that a library prints through a Writer is still valid JSON, and means the same.
func TestWriterKeepsJSON(t *testing.T) {
	for r := range rune(0x2100) {
		want := "a" + string(r) + "b"
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if _, err := NewWriter(&out).Write(data); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got != want {
			t.Errorf("%U: %s is read as %q: %v", r, out.String(), got, err)
		}
	}
}
