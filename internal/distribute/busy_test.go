package distribute

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/internal/copies"
)

// The queue keeps the earliest of the times for which a key was put into it. So a target may be taken before its next try is due, and is
// queued again for that time.
func TestATargetThatIsTakenTooEarlyIsQueuedAgain(t *testing.T) {
	c := newCluster(t, "d0")
	c.refuse = func(Verb, copies.Slot) error { return apierrors.NewTooManyRequests("busy", 5) }
	c.distribute("new")
	c.settle(100 * time.Millisecond)
	c.refuse, c.writes = nil, nil
	clear(c.later)
	c.applyTo(Started{Key{"rd", "d0"}})
	c.settle(time.Minute)
	if !slices.Contains(c.writes, "create d0") {
		t.Errorf("got writes %v, want a second try", c.writes)
	}
}

// FLT-F05: while the write of a status fails, it is tried less and less often, whatever else queues the ResourceDistribution. No copy is
// written before.
func TestAStatusThatCantBeWrittenIsPutOff(t *testing.T) {
	c := newCluster(t, "d0")
	c.distribute("new")
	c.applyTo(c.events[0])
	look := c.applyTo(Started{Key{Distribution: "rd"}}).(ListObstacles)
	write := c.applyTo(ObstaclesFound{ListObstacles: look}).(WriteStatus)
	busy := apierrors.NewTooManyRequests("busy", 1)
	c.applyTo(StatusWritten{WriteStatus: write, Err: busy})
	begun, last, tries := c.now, c.now, 0
	for c.now.Before(begun.Add(30 * time.Second)) {
		c.now = c.now.Add(100 * time.Millisecond)
		if request := c.applyTo(Started{Key{"rd", "d0"}}); request != nil {
			t.Fatalf("got %T before the status was written", request)
		}
		if again, ok := c.applyTo(ObstaclesFound{ListObstacles: look}).(WriteStatus); ok {
			if wait := c.now.Sub(last); wait < time.Duration(2<<tries)*time.Second {
				t.Errorf("try %d comes %s after the one before", tries+2, wait)
			}
			tries, last = tries+1, c.now
			c.applyTo(StatusWritten{WriteStatus: again, Err: busy})
		}
	}
	if tries != 3 {
		t.Errorf("tried again %d times in 30 s, not 3 times", tries)
	}
	c.now = c.now.Add(time.Minute)
	again := c.applyTo(ObstaclesFound{ListObstacles: look}).(WriteStatus)
	c.applyTo(StatusWritten{WriteStatus: again, NewVersion: "1"})
	if request, ok := c.applyTo(Started{Key{"rd", "d0"}}).(WriteCopy); !ok || request.Action.Verb != Create {
		t.Errorf("got %+v, want the copy made", request)
	}
}
