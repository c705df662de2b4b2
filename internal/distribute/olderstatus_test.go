package distribute

import (
	"testing"
	"time"
)

// A watch that is behind shows a status that the operator has replaced since.
func TestAnOlderStatusThanTheOperatorsOwnChangesNothing(t *testing.T) {
	c := newCluster(t, "d0", "d1")
	c.distribute("new")
	c.settle(time.Minute)
	older := c.rds["rd"].DeepCopy()
	c.stranger("d0", "theirs") // it is no copy any more: the status changes
	c.settle(time.Minute)
	now := c.rds["rd"]
	if older.ResourceVersion == now.ResourceVersion {
		t.Fatal("the status has not changed")
	}
	c.applyTo(DistributionSeen{older})
	if got := c.state.runs.at("rd").report.resourceVersion; got != now.ResourceVersion {
		t.Errorf("the status counts as that of version %s, not of %s: the next write of it is refused", got, now.ResourceVersion)
	}
}
