package text_test

import (
	"testing"

	"github.com/warren-tenancy/warren/internal/text"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"shorter", 6, "sho…"},
		{"zwölf", 6, "zwölf"},
		{"zwölfer", 6, "zw…"},
	} {
		if got := text.Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
