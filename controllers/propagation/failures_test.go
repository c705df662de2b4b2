package propagation

import (
	"errors"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

func TestBackoff(t *testing.T) {
	t.Run("PROP-I8", func(t *testing.T) {
		retry := configfile.Default().Propagation.Retry
		for range 1000 {
			tries := 1
			for at := time.Duration(0); ; tries++ {
				if at += copying.Backoff(retry.Min.Duration, retry.Max.Duration, tries); at > 10*time.Minute {
					break
				}
			}
			if tries > 12 {
				t.Fatalf("%d tries in 10 minutes", tries)
			}
		}
	})
}

// An object that is being deleted, and keeps a finalizer for ever, must not cost two requests a second.
func TestWhatIsBeingDeletedBacksOff(t *testing.T) {
	t.Run("PROP-I10", func(t *testing.T) {
		r, _, _ := removalsOf(tablesOf())
		c := &copies{timing: DefaultTiming(), queue: r.queue, troubles: r.troubles, measure: newMeasure()}
		slot := secretsIn("a")
		for range 7 {
			c.handleFailure(slot, propagate.Action{Verb: propagate.Create}, errBeingDeleted)
		}
		if got := r.troubles.of(slot); got.tries != 7 || !got.blocked() || got.obstructed() {
			t.Fatalf("got %+v, want seven tries of a slot that is blocked, and no conflict", got)
		}
		if low := copying.Backoff(time.Second, c.timing.ConflictMax, 7); low < 36*time.Second {
			t.Fatalf("the next look is after %s, want about %s", low, c.timing.ConflictMax)
		}
		r.troubles.known = false
		if r.troubles.setKnown(nil); !r.troubles.isKnown("b") {
			t.Fatal("what may last for ever keeps the report of the whole cluster waiting")
		}
	})
}

// The cage refuses a copy in a namespace that has joined its tree a moment ago: no Event, unless it refuses again.
func TestFirstRefusalByTheCage(t *testing.T) {
	t.Run("PROP-I16", func(t *testing.T) {
		cage := errors.New(`secrets "s" is forbidden: ValidatingAdmissionPolicy 'warren-operator-cage-objects' with binding 'warren-operator-cage-objects' denied request: no`)
		other := errors.New(`secrets "s" is forbidden: ValidatingAdmissionPolicy 'no-secrets' with binding 'no-secrets' denied request: no`)
		for _, c := range []struct {
			err   error
			tries int
			want  bool
		}{{cage, 1, true}, {cage, 2, false}, {other, 1, false}} {
			if got := passesSoon(c.err, c.tries); got != c.want {
				t.Errorf("try %d of %v: %t", c.tries, c.err, got)
			}
		}
	})
}

// One slot that is never answered must not hide what is known of every other namespace.
func TestUnansweredSlot(t *testing.T) {
	t.Run("PROP-R9", func(t *testing.T) {
		r, _, _ := removalsOf(tablesOf())
		slot := secretsIn("a")
		r.troubles.known = false
		r.troubles.retryLater(slotKey(slot), errors.New("internal error"))
		r.troubles.setKnown(nil)
		if r.troubles.isKnown("a") || !r.troubles.isKnown("b") {
			t.Errorf("a is known: %t, b is known: %t; want only b", r.troubles.isKnown("a"), r.troubles.isKnown("b"))
		}
		r.troubles.clear(slot)
		if !r.troubles.isKnown("a") {
			t.Error("what was answered in the end stays unknown")
		}
	})
}
