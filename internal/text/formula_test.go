package text_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/text"
)

func TestDisarmFormulas(t *testing.T) {
	given := []string{"", "4711", "ann@example.com", "a-b=c+d", "2026-03-01T09:00:00Z", `{"team":"x=1"}`,
		`=cmd|'/C calc'!A0`, "+1", "-1", "@SUM(A1)", "\t=1", " =1", "＝1", "x;=1", "x;\t -1", "x\n=1", `"=1`, `x;"=1`, `{"team":"x;=1"}`}
	want := []string{"", "4711", "ann@example.com", "a-b=c+d", "2026-03-01T09:00:00Z", `{"team":"x=1"}`,
		`'=cmd|'/C calc'!A0`, "'+1", "'-1", "'@SUM(A1)", "\t'=1", " '=1", "'＝1", "x;'=1", "x;\t '-1", "x\n'=1", `"'=1`, `x;"'=1`,
		`{"team":"x;'=1"}`}
	if diff := cmp.Diff(want, text.DisarmFormulas(given)); diff != "" {
		t.Error(diff)
	}
	if again := text.DisarmFormulas(want); !cmp.Equal(want, again) {
		t.Errorf("disarming twice changes %q", again)
	}
}
