package copies

import (
	"strings"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// A finalizer keeps only a copy whose deletion the API server has accepted.
func TestDescribeRemoval(t *testing.T) {
	held := &Kept{Finalizers: []string{"example.com/f"}}
	rejected := slotTrouble{reason: v1alpha1.ReasonRejected, text: "not this one"}
	for name, c := range map[string]struct {
		copy  Copy
		known slotTrouble
		want  string
	}{
		"PROP-V2 the refusal of a copy with a finalizer": {Copy{Kept: held}, rejected, "refuses to delete it: not this one"},
		"a finalizer, after an earlier refusal":          {Copy{Kept: held, Terminating: true}, rejected, "a finalizer keeps it: example.com/f"},
		"a finalizer":                                    {Copy{Kept: held, Terminating: true}, slotTrouble{}, "a finalizer keeps it: example.com/f"},
	} {
		if got := describeRemoval(&c.copy, c.known); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
