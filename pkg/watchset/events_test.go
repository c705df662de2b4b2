package watchset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// log records the events that a handler gets.
type log struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// want fails the test unless exactly these events, in any order, have come since its last call.
func (l *log) want(lines ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.lines)
	slices.Sort(lines)
	if !slices.Equal(l.lines, lines) {
		l.t.Errorf("events %q, want %q", l.lines, lines)
	}
	l.lines = nil
}

func (l *log) handler() handler.EventHandler {
	name := func(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { l.add("create %s", name(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { l.add("update %s", name(e.ObjectNew)) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { l.add("delete %s", name(e.Object)) },
	}
}

func (w *world) queue() queue {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	w.Cleanup(q.ShutDown)
	return q
}

func (w *world) listen(resource schema.GroupVersionResource) *log {
	w.Helper()
	l := &log{t: w.T}
	w.start(resource, l.handler())
	return l
}

func (w *world) start(resource schema.GroupVersionResource, h handler.EventHandler) queue {
	w.Helper()
	q := w.queue()
	source := w.Source("test", resource, h)
	if err := source.Start(w.Context(), q); err != nil {
		w.Fatal(err)
	}
	if err := source.WaitForSync(w.Context()); err != nil {
		w.Fatal(err)
	}
	return q
}

// INF-I30 to INF-I32 with a server in memory, which makes it possible to check every single event.
func TestAutoGoesUpAndDown(t *testing.T) {
	a := newAPI(append(both("secrets", "a"), both("secrets", "b")...)...)
	for _, ns := range []string{"a", "b", "c"} {
		a.put("secrets", ns, "s")
	}
	bubble(t, a, quiet(), func(w *world) {
		events := w.listen(secrets)
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet("a", "b", "c"))})
		w.is(l, watchset.Forbidden)
		events.want("create a/s", "create b/s")
		all, err := l.List("", nil)
		var partial *watchset.PartialError
		if len(all) != 2 || !errors.As(err, &partial) || len(partial.Namespaces) != 1 || partial.Namespaces["c"] == nil {
			t.Errorf("%d objects, %v", len(all), err)
		}

		a.grant(both("secrets", "*")...)
		w.Poke()
		w.after(time.Second)
		w.is(l, watchset.Synced)
		events.want("create c/s")
		if n := a.open(); n != 1 {
			t.Errorf("%d streams, want one", n)
		}
		a.put("secrets", "a", "s")
		events.want("update a/s")

		a.revoke(both("secrets", "*")...)
		a.put("secrets", "b", "t")
		synctest.Wait()
		events.want("create b/t")
		w.Poke()
		w.after(time.Second)
		w.is(l, watchset.Forbidden)
		for ns, want := range map[string]watchset.State{"a": watchset.Synced, "b": watchset.Synced, "c": watchset.Forbidden} {
			if state := l.StatusFor(ns).State; state != want {
				t.Errorf("%s is %s, want %s", ns, state, want)
			}
		}
		events.want()
		a.remove("secrets", "a", "s")
		events.want("delete a/s")
	})
}

// A namespace was deleted and created again. The rights in the old one give no access to the objects of the new one.
func TestNamespaceWithANewUID(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "old")
	bubble(t, a, quiet(), func(w *world) {
		events := w.listen(secrets)
		set := watchset.NewNamespaceSet()
		set.Add("a", "1")
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespaces(set)})
		events.want("create a/old")
		a.revoke(both("secrets", "a")...) // the new one has no RoleBinding
		set.Add("a", "2")
		a.put("secrets", "a", "new")
		events.want("delete a/old")
		w.is(l, watchset.Forbidden)
		if n := a.open(); n != 0 {
			t.Errorf("%d streams, want none", n)
		}
		set.Remove("a")
		synctest.Wait()
		if len(w.Informers()) != 0 {
			t.Error("a namespace that left the set is followed")
		}
	})
}

// INF-I55: a slow handler delays no other handler, and gets one event for each object.
func TestSlowHandler(t *testing.T) {
	a := newAPI(append(both("secrets", "a"), both("widgets", "a")...)...)
	bubble(t, a, quiet(), func(w *world) {
		slow := &log{t: t}
		inner := slow.handler()
		wait := func() { <-time.After(time.Second) }
		w.start(secrets, handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wait(); inner.Create(ctx, e, q) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wait(); inner.Update(ctx, e, q) },
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wait(); inner.Delete(ctx, e, q) },
		})
		fast := w.listen(widgets)
		w.lease(in("a"))
		w.lease(watchset.Request{Resource: widgets, Scope: watchset.Namespace("a")})
		for _, name := range []string{"s", "t"} {
			for range 100 {
				a.put("secrets", "a", name)
			}
		}
		a.remove("secrets", "a", "t")
		a.put("widgets", "a", "w")
		fast.want("create a/w")
		w.after(10 * time.Second)
		if len(slow.lines) > 3 {
			t.Errorf("events %q, want three at most", slow.lines)
		}
	})
}

func TestHandlersMayCallBack(t *testing.T) {
	t.Run("INF-I52 neither an event handler that calls Release nor a reconciler, enqueued by States, that calls Acquire is in "+
		"a deadlock", handlersMayCallBack)
}

func handlersMayCallBack(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	bubble(t, a, quiet(), func(w *world) {
		var l *watchset.Lease
		var mu sync.Mutex
		released := false
		q := w.start(secrets, handler.Funcs{CreateFunc: func(context.Context, event.CreateEvent, queue) {
			mu.Lock()
			defer mu.Unlock()
			l.Release()
			w.Release(owner("x"))
			released = true
		}})
		if err := w.States("test").Start(w.Context(), q); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		l, _ = w.Acquire(owner("x"), in("a"))
		mu.Unlock()
		synctest.Wait()
		request, _ := q.Get()
		if request.Name != "x" {
			t.Errorf("States enqueued %v", request)
		}
		if _, err := w.Acquire(owner(request.Name), in("b")); err != nil {
			t.Error(err)
		}
		q.Done(request)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if !released {
			t.Error("the handler hangs")
		}
	})
}

// Owners are enqueued for the objects that their leases cover, and for no others.
func TestEnqueueOwners(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	bubble(t, a, quiet(), func(w *world) {
		q := w.start(secrets, nil)
		one := watchset.Request{Resource: secrets, Scope: watchset.Object("a", "s")}
		x, _ := w.Acquire(owner("x"), one)
		_, _ = w.Acquire(owner("y"), one)
		_, _ = w.Acquire(owner("z"), watchset.Request{Resource: secrets, Scope: watchset.Object("a", "other")})
		enqueued := func() (names []string) {
			synctest.Wait()
			for q.Len() > 0 {
				request, _ := q.Get()
				q.Done(request)
				names = append(names, request.Name)
			}
			slices.Sort(names)
			return names
		}
		synctest.Wait()
		a.put("secrets", "a", "s")
		if got := enqueued(); !slices.Equal(got, []string{"x", "y"}) {
			t.Errorf("enqueued %v, want x and y", got)
		}
		x.Release()
		a.put("secrets", "a", "s")
		if got := enqueued(); !slices.Equal(got, []string{"y"}) {
			t.Errorf("enqueued %v, want y", got)
		}
	})
}

func TestManyOwners(t *testing.T) {
	t.Run("INF-I51 after 10,000 Acquire and Release from 64 goroutines, while states change, no watch and no lease is left", manyOwners)
}

func manyOwners(t *testing.T) {
	a := newAPI(append(both("secrets", "a"), both("secrets", "b")...)...)
	o := quiet()
	o.IdleGrace, o.Backoff = ptr.To(time.Millisecond), watchset.Backoff{Initial: time.Millisecond, Max: 10 * time.Millisecond}
	bubble(t, a, o, func(w *world) {
		w.listen(secrets)
		set := watchset.NewNamespaceSet("a", "b")
		scopes := []watchset.Scope{watchset.Cluster(), watchset.Namespace("a"), watchset.Object("b", "s"), watchset.Namespaces(set),
			watchset.Auto(set)}
		seed := rand.Uint64()
		t.Logf("what the goroutines do is drawn by seed %d", seed)
		var working sync.WaitGroup
		for i := range 64 {
			working.Go(func() {
				me, random := owner(fmt.Sprint("o", i%8)), rand.New(rand.NewPCG(seed, uint64(i)))
				for range 10000 / 64 {
					session := w.Session(me)
					l, err := session.Acquire(watchset.Request{Resource: secrets, Scope: scopes[random.IntN(len(scopes))]})
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = l.List("", nil)
					_ = l.Status()
					switch random.IntN(8) {
					case 0:
						session.Commit()
					case 1:
						w.Release(me)
					case 2:
						set.Add("b", types.UID(fmt.Sprint(random.IntN(3))))
					case 3:
						w.set(random.IntN(2) == 0, both("secrets", "*")...)
						w.Poke()
					case 4:
						a.put("secrets", "a", "s")
						_ = w.Informers()
					default:
						l.Release()
					}
				}
			})
		}
		working.Wait()
		for i := range 8 {
			w.Release(owner(fmt.Sprint("o", i)))
		}
		w.after(time.Second)
		if left := w.Informers(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if n := a.open(); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}
