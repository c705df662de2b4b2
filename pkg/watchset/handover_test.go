package watchset_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// held starts a handler that waits with every event until free is called. told records the events that it gets.
func (w *world) held(resource schema.GroupVersionResource) (told *log, free func()) {
	w.Helper()
	told = &log{t: w.T}
	inner, gate := told.handler(), make(chan struct{})
	w.start(resource, handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { <-gate; inner.Create(ctx, e, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { <-gate; inner.Update(ctx, e, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { <-gate; inner.Delete(ctx, e, q) },
	})
	return told, sync.OnceFunc(func() { close(gate) })
}

// Events that wait for a slow handler are dropped when their informer becomes Forbidden.
func TestWhatWaitsIsForbiddenToo(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	for _, name := range []string{"s", "t", "u"} {
		a.put("secrets", "a", name)
	}
	bubble(t, a, quiet(), func(w *world) {
		told, free := w.held(secrets)
		l := w.lease(in("a"))
		w.is(l, watchset.Synced)
		a.revoke(both("secrets", "a")...)
		w.Poke()
		w.after(time.Second)
		w.is(l, watchset.Forbidden)
		free()
		synctest.Wait()
		if len(told.lines) > 1 {
			t.Errorf("events %q after the right was gone, want only the one that was under way", told.lines)
		}
	})
}

// Events that wait for a slow handler are neither lost nor repeated when an Auto lease changes from namespaces to the cluster.
func TestWhatWaitsIsPassedOn(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	for _, name := range []string{"s", "t", "u"} {
		a.put("secrets", "a", name)
	}
	bubble(t, a, quiet(), func(w *world) {
		told, free := w.held(secrets)
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet("a"))})
		w.is(l, watchset.Synced)
		a.grant(both("secrets", "*")...)
		w.Poke()
		w.after(time.Second)
		if n := len(w.Informers()); n != 1 {
			t.Fatalf("%d parts, want the cluster's", n)
		}
		free()
		told.want("create a/s", "create a/t", "create a/u")
	})
}

// When an Auto lease changes to the cluster, the cluster-wide list may be older than the objects of a namespace's informer.
func TestUpToAnOlderList(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "old")
	before := a.version
	bubble(t, a, quiet(), func(w *world) {
		told := w.listen(secrets)
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet("a"))})
		a.put("secrets", "a", "new")
		told.want("create a/new", "create a/old")
		a.do(func() { a.lags = before })
		a.grant(both("secrets", "*")...)
		w.Poke()
		for range 200 {
			<-time.After(10 * time.Millisecond)
			if _, err := l.Get(types.NamespacedName{Namespace: "a", Name: "new"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := a.open(); n != 1 {
			t.Errorf("%d streams, want the cluster's", n)
		}
		told.want()
	})
}

func TestAutoOnAClusterScopedResource(t *testing.T) {
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	for name, rights := range map[string][]string{"from the beginning": nil, "after a while": both("nodes", "*")} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(rights...)
			bubble(t, a, quiet(), func(w *world) {
				l := w.lease(watchset.Request{Resource: nodes, Scope: watchset.Auto(watchset.NewNamespaceSet("a"))})
				a.revoke(rights...)
				w.Poke()
				w.after(time.Second)
				w.is(l, watchset.Forbidden)
				if n := len(w.Informers()); n != 1 {
					t.Errorf("%d parts, want the cluster's", n)
				}
			})
		})
	}
}

// An Auto lease begins when it is already known that the whole cluster can't be watched.
func TestAutoJoinsLate(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	bubble(t, a, quiet(), func(w *world) {
		auto := watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet("a"))}
		w.is(w.lease(auto), watchset.Synced)
		auto.Scope = watchset.Auto(watchset.NewNamespaceSet("a"))
		l, err := w.Acquire(owner("y"), auto)
		if err != nil {
			t.Fatal(err)
		}
		w.is(l, watchset.Synced)
		if n := a.count("watch", "secrets"); n != 2 {
			t.Errorf("%d watches, want one that is refused and one that isn't", n)
		}
	})
}

// INF-I32: an Auto lease changes to namespaces. Another controller already has the informer of one, whose first list has never come.
func TestAutoJoinsAnInformerWithoutList(t *testing.T) {
	a := newAPI(both("secrets", "*")...)
	a.put("secrets", "a", "s")
	a.hangs = "a"
	bubble(t, a, quiet(), func(w *world) {
		events := w.listen(secrets)
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet("a"))})
		w.is(l, watchset.Synced)
		events.want("create a/s")
		others := owner("x")
		others.Controller = "other"
		other, err := w.Acquire(others, in("a"))
		if err != nil {
			t.Fatal(err)
		}
		w.after(31 * time.Second)
		w.is(other, watchset.Degraded)

		a.grant(both("secrets", "a")...)
		a.revoke(both("secrets", "*")...)
		w.Poke()
		w.after(time.Second)
		w.is(l, watchset.Degraded)
		events.want()
	})
}
