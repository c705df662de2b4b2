package watchset_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestDegradedKeepsObjects(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	a.put("secrets", "a", "t")
	bubble(t, a, quiet(), func(w *world) {
		events := w.listen(secrets)
		l := w.lease(in("a"))
		events.want("create a/s", "create a/t")
		a.do(func() { a.down = true })
		a.drop()
		w.after(20 * time.Second)
		w.is(l, watchset.Synced)
		w.after(20 * time.Second)
		w.is(l, watchset.Degraded)
		object, err := l.Get(types.NamespacedName{Namespace: "a", Name: "s"})
		var degraded *watchset.DegradedError
		if object == nil || !errors.As(err, &degraded) || degraded.LastSync.IsZero() || !apierrors.IsInternalError(degraded.Cause) {
			t.Errorf("%v, %v", object, err)
		}
		if _, err := l.Get(types.NamespacedName{Namespace: "a", Name: "u"}); apierrors.IsNotFound(err) || !errors.As(err, &degraded) {
			t.Errorf("%v: absence means nothing while Degraded", err)
		}
		a.do(func() { a.down = false })
		a.remove("secrets", "a", "s")
		a.put("secrets", "a", "u")
		w.after(time.Minute)
		w.is(l, watchset.Synced)
		events.want("create a/u", "delete a/s")
		if len(w.lines) != 3 {
			t.Errorf("log lines: %q, want three", w.lines)
		}
	})
}

func TestHangingListsFreeTheirSlots(t *testing.T) {
	a := newAPI(both("secrets", "*")...)
	a.hangs = "a"
	o := quiet()
	o.StartConcurrency = 1
	bubble(t, a, o, func(w *world) {
		l, next := w.lease(in("a")), w.lease(in("b"))
		w.is(l, watchset.Syncing)
		w.is(next, watchset.Pending)
		w.after(31 * time.Second)
		w.is(l, watchset.Degraded)
		w.is(next, watchset.Synced)
		a.do(func() { a.hangs = "" })
		w.is(w.lease(in("c")), watchset.Synced)
	})
}

// The list of an informer that is already Degraded hangs again.
func TestListsThatHangAgainFreeTheirSlots(t *testing.T) {
	t.Run("INF-I82 at StartConcurrency 1, an informer whose list hangs, and hangs again, is Degraded; after DegradedAfter the next informer "+
		"has its turn each time", func(t *testing.T) {
		a := newAPI(both("secrets", "*")...)
		a.hangs = "a"
		o := quiet()
		o.StartConcurrency = 1
		bubble(t, a, o, func(w *world) {
			a.do(func() { a.resume = make(chan struct{}) })
			l := w.lease(in("a"))
			w.after(31 * time.Second)
			w.is(l, watchset.Degraded)
			for _, other := range []string{"b", "c"} {
				a.do(func() { a.down = true })
				a.resume <- struct{}{} // the request fails, and its repetition hangs
				w.after(time.Millisecond)
				a.do(func() { a.down = false })
				w.after(16 * time.Second)
				next := w.lease(in(other))
				w.is(next, watchset.Pending)
				w.after(31 * time.Second)
				w.is(next, watchset.Synced)
			}
			w.is(l, watchset.Degraded)
		})
	})
}
