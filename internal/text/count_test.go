package text_test

import (
	"testing"

	"github.com/warren-tenancy/warren/internal/text"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 copies", 1: "1 copy", 12: "12 copies"} {
		if got := text.Count(n, "copy", "copies"); got != want {
			t.Errorf("Count of %d: got %q, wanted %q", n, got, want)
		}
	}
}
