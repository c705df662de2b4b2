package copies_test

import (
	"fmt"
	"testing"

	"github.com/warren-tenancy/warren/internal/copies"
)

// TestSpread queues the slots of a source above many namespaces in several steps. Each slot is queued once, although namespaces are created
// and deleted between two steps.
func TestSpread(t *testing.T) {
	names := []string{"acme root"}
	for i := range 100 {
		names = append(names, fmt.Sprintf("c%02d in acme", i))
	}
	s := leading(t, planted(names...))
	from := in("acme", secret, "wide")
	propagated(from, 1, update)(s.server)
	for len(s.server.events) > 0 {
		s.deliver()
	}
	s.start(sourceTask(from))
	s.answer(from)
	spreadTask := copies.Key{Task: copies.SpreadSource, Slot: from}
	for step := 1; ; step++ {
		slots := 0
		for _, key := range s.queue {
			if key.Task == copies.WriteSlot {
				slots++
			}
		}
		if want := min(32*step, 100); slots != want {
			t.Fatalf("after step %d, %d slots are queued, want %d", step, slots, want)
		}
		if slots == 100 {
			break
		}
		if step == 2 {
			s.apply(s.moved(planted(append(names[:60:60], "new in acme")...), "c99", "new"))
		}
		s.start(spreadTask)
	}
	s.settle()
	s.requireSettled()
}
