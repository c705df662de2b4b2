package copyengine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
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
	spreadTask := copyengine.Key{Task: copyengine.SpreadSource, Slot: from}
	for step := 1; ; step++ {
		slots := 0
		for _, key := range s.queue {
			if key.Task == copyengine.WriteSlot {
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

func TestSlotsOfASource(t *testing.T) {
	w := copies.NewWorld(acme())
	w.PutSource(at("acme"), &copies.Source{Mode: update})
	for _, namespace := range []string{"b", "z"} { // acme is not above z
		w.PutCopy(at(namespace), &copies.Copy{From: "acme"})
	}
	anyOrder := cmpopts.SortSlices(func(a, b copies.Slot) bool { return a.String() < b.String() })
	for source, want := range map[string][]copies.Slot{"acme": {at("a"), at("a1"), at("b"), at("z")}, "solo": nil} {
		if diff := cmp.Diff(want, copyengine.SlotsOf(w, at(source)), anyOrder); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}
