package propagation

import (
	"errors"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// removalsOf are removals over tables, with a queue whose keys next returns.
func removalsOf(tb *tables) (r *removals, told *[]string, next func() (key, bool)) {
	q := newQueue(facts{tb})
	q.Lead()
	told = &[]string{}
	tr := &troubles{
		queue: q, snapshot: func() *forest.Snapshot { return tb.in.world.Forest }, known: true,
		report: func(namespaces ...string) { *told = append(*told, namespaces...) },
		slots:  map[string]map[propagate.Slot]*trouble{},
	}
	return newRemovals(facts{tb}, q, tr, 0), told, func() (k key, ok bool) {
		if q.Len() == 0 {
			return key{}, false
		}
		q.WorkOne(func(got key) (inVain bool) { k = got; return false })
		return k, true
	}
}

func TestRemovals(t *testing.T) {
	create := propagate.Action{Verb: propagate.Create}
	waiting := propagate.Action{Reason: v1alpha1.ReasonWaitingForRemoval}

	t.Run("a write waits for the answer to a DELETE", func(t *testing.T) {
		r, _, next := removalsOf(tablesOf())
		err := r.during("a", func() error {
			if !r.holdBack(secretsIn("a"), create) {
				t.Error("the write went ahead of the answer")
			}
			if r.holdBack(secretsIn("acme"), create) || r.holdBack(secretsIn("a"), propagate.Action{Verb: propagate.Delete}) {
				t.Error("other namespaces, and other removals, don't wait")
			}
			return nil
		})
		if k, ok := next(); err != nil || !ok || k != namespaceKey("a") {
			t.Fatalf("got %v, want the namespace looked at again", k)
		}
		if r.holdBack(secretsIn("a"), create) {
			t.Fatal("nothing is in the way any more")
		}
	})
	t.Run("a plan that is out of date leaves no barrier", func(t *testing.T) {
		r, _, next := removalsOf(tablesOf()) // where the copy has gone since
		if !r.holdBack(secretsIn("a"), waiting) {
			t.Fatal("this action can't be carried out")
		}
		if k, ok := next(); !ok || k != namespaceKey("a") || len(r.namespaces()) != 0 {
			t.Fatalf("got %v, want the namespace looked at again", k)
		}
	})
	t.Run("a removal that fails holds back nobody who need not wait", func(t *testing.T) {
		r, _, next := removalsOf(tablesOf())
		_ = r.during("a", func() error { r.holdBack(secretsIn("a"), create); return errors.New("refused") })
		if k, ok := next(); ok || len(r.namespaces()) != 0 {
			t.Fatalf("got %v and a barrier of %v; nothing is planned there", k, r.namespaces())
		}
	})
	t.Run("who waits for long is reported, once, and when it ends", func(t *testing.T) {
		r, told, _ := removalsOf(tablesOf())
		_ = r.during("a", func() error {
			r.holdBack(secretsIn("a"), create)
			r.reportStuck()
			r.reportStuck()
			if !r.isReported("a") || len(*told) != 3 { // a, and the path down to it
				t.Errorf("told %v", *told)
			}
			return nil
		})
		if r.isReported("a") || len(*told) != 6 {
			t.Fatalf("told %v", *told)
		}
	})
}
