package copyengine

import (
	"strings"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// A finalizer keeps only a copy whose deletion the API server has accepted. The names of the cases say what became of the deletion.
func TestDescribeRemoval(t *testing.T) {
	held := &copies.Kept{Finalizers: []string{"example.com/f"}}
	rejected := slotTrouble{reason: v1alpha1.ReasonRejected, text: "not this one"}
	for name, c := range map[string]struct {
		copy  copies.Copy
		known slotTrouble
		want  string
	}{
		"PROP-V2 WaitingForRemoval has the text " +
			"of the refused DELETE": {copies.Copy{Kept: held}, rejected, "refuses to delete it: not this one"},
		"it is accepted":                 {copies.Copy{Kept: held, Terminating: true}, slotTrouble{}, "a finalizer keeps it: example.com/f"},
		"it is accepted after a refusal": {copies.Copy{Kept: held, Terminating: true}, rejected, "a finalizer keeps it: example.com/f"},
	} {
		if got := describeRemoval(&c.copy, c.known); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
