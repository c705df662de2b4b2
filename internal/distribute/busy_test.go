package distribute

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
