package hierarchy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/view"
)

func TestPlacing(t *testing.T) {
	s := grown(root("x"), root("y"), named("a"), named("b"), named("c"), named("d"))
	listening := func() (*Reconciler, func() string) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Second))
		t.Cleanup(q.ShutDown)
		r := &Reconciler{}
		if err := r.placing.again.Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		return r, func() string {
			if q.Len() == 0 {
				return ""
			}
			r, _ := q.Get()
			q.Done(r)
			return r.Name
		}
	}

	t.Run("HIER-R4 namespaces are placed one at a time, in the order of asking; trees take turns, and who asks twice has one "+
		"turn", func(t *testing.T) {
		r, next := listening()
		m := &r.placing
		if !m.beginMove(s, "a", "x") {
			t.Fatal("the first waits")
		}
		for _, asked := range []string{"b x", "c x", "b x", "d y"} {
			name, parent, _ := strings.Cut(asked, " ")
			if m.beginMove(s, name, parent) {
				t.Errorf("%s is moved beside another", name)
			}
		}
		var order []string
		for range 4 {
			m.endMove()
			name := next()
			order = append(order, name)
			if name != "e" && m.beginMove(s, "e", "x") || !m.beginMove(s, name, "x") {
				t.Errorf("%s does not have its turn", name)
			}
			if name == "b" {
				m.passTurn("e") // e doesn't wait any more, so it has no turn to pass on
			}
		}
		if want := []string{"b", "d", "c", "e"}; !slices.Equal(order, want) {
			t.Errorf("moved in the order %v, want %v", order, want)
		}
	})
	t.Run("HIER-R4 a namespace that no longer asks for a place passes its turn on to the next", func(t *testing.T) {
		r, next := listening()
		m := &r.placing
		m.beginMove(s, "a", "x")
		m.beginMove(s, "b", "x")
		m.beginMove(s, "c", "x")
		m.endMove()
		if got := next(); got != "b" {
			t.Fatalf("%s is next", got)
		}
		m.passTurn("b")
		if got := next(); got != "c" || !m.beginMove(s, "c", "x") {
			t.Errorf("%s is next", got)
		}
		m.endMove()
		if got := next(); got != "" || !m.beginMove(s, "d", "x") {
			t.Errorf("%s is next, though nobody waits", got)
		}
	})
	t.Run("HIER-R4 a request that waits for its turn is checked then, and at no change before", func(t *testing.T) {
		r, next := listening()
		for _, name := range []string{"a", "b"} {
			r.waiting.add(name)
		}
		if !r.beginMove(s, "a", "x") || r.beginMove(s, "b", "x") {
			t.Fatal("b is moved beside a")
		}
		change := view.Change{Old: s, New: s.WithNamespace(named("new")), Namespaces: []string{"a", "b", "x"}}
		if got := slices.Collect(r.Waiting(change)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("a change has %v judged", got)
		}
		r.placing.endMove()
		if got := next(); got != "b" || !r.beginMove(s, "b", "x") {
			t.Errorf("%q is next", got)
		}
	})
	t.Run("HIER-R4 if 300 namespaces ask at once, each request is checked once", func(t *testing.T) {
		r, next := listening()
		m := &r.placing
		m.beginMove(s, "a", "x")
		for i := range 300 {
			m.beginMove(s, fmt.Sprint("n", i), "x")
		}
		moved, tries := 0, 0
		for name := "a"; name != ""; tries++ {
			if name == "a" || m.beginMove(s, name, "x") {
				moved++
				m.endMove()
			}
			name = next()
		}
		if moved != 301 || tries != 301 {
			t.Errorf("%d were moved at %d tries", moved, tries)
		}
	})
}
