package distribute

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A new copy waits for the share of its namespace, without a write or a failure, and holds up no other target. A copy that is there is
// changed meanwhile.
func TestNewCopiesWaitForTheShare(t *testing.T) {
	c := newCluster(t, "d0", "d1")
	for _, step := range []struct{ awaiting, data, writes string }{
		{"d1", "new", "create d0"},
		{"", "new", "create d1"},
		{"d1", "newer", "update d0, update d1"},
	} {
		c.awaiting, c.writes = step.awaiting, nil
		c.distribute(step.data)
		c.settle(10 * time.Second)
		slices.Sort(c.writes)
		if diff := cmp.Diff(step.writes, strings.Join(c.writes, ", ")); diff != "" {
			t.Errorf("writes while %q waits (-want +got):\n%s", step.awaiting, diff)
		}
		if failed := c.rds["rd"].Status.Failed; failed > 0 {
			t.Errorf("%d targets are reported as failed", failed)
		}
	}
}
