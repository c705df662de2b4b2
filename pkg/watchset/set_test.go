package watchset_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

var (
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// client-go lets at least a millisecond pass between two error logs, by the clock that the first log used. In a synctest bubble, the clock
// starts in the year 2000. So an error outside of the bubble would wait for a quarter of a century.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

func owner(name string) watchset.Owner {
	return watchset.Owner{Controller: "test", NamespacedName: types.NamespacedName{Name: name}}
}

// world is a Set that runs with an api as its server, in a bubble of testing/synctest with a fake clock.
type world struct {
	*testing.T
	*api
	*watchset.Set
	lines   []string
	stopped time.Time
}

func bubble(t *testing.T, a *api, o watchset.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: a}
		var mu sync.Mutex
		o.Logger = funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			w.lines = append(w.lines, time.Now().Format("05.000 ")+args)
		}, funcr.Options{})
		var err error
		if w.Set, err = watchset.New(a.config(), o); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		synctest.Wait()
		f(w)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.stopped = time.Now()
		if n := a.open(); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

func (w *world) lease(r watchset.Request) *watchset.Lease {
	w.Helper()
	l, err := w.Acquire(owner("x"), r)
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	return l
}

// after lets time pass.
func (w *world) after(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func (w *world) is(l *watchset.Lease, want watchset.State) watchset.Status {
	w.Helper()
	status := l.Status()
	if status.State != want {
		w.Errorf("the state is %s (%v), want %s", status.State, status.Err, want)
	}
	return status
}

func in(namespace string) watchset.Request {
	return watchset.Request{Resource: secrets, Scope: watchset.Namespace(namespace)}
}

func quiet() watchset.Options {
	return watchset.Options{WatchRBAC: watchset.Off, WatchCRDs: watchset.Off}
}

func both(resource, namespace string) []string {
	return []string{"list " + resource + " " + namespace, "watch " + resource + " " + namespace}
}

func TestSyncedWithOneRequest(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	bubble(t, a, quiet(), func(w *world) {
		if n := a.count("", ""); n != 0 {
			t.Errorf("%d requests before there is a lease", n)
		}
		l := w.lease(in("a"))
		w.is(l, watchset.Synced)
		if n := a.count("", ""); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		if _, err := l.Get(types.NamespacedName{Namespace: "a", Name: "s"}); err != nil {
			t.Error(err)
		}
		if _, err := l.Get(types.NamespacedName{Namespace: "a", Name: "t"}); !apierrors.IsNotFound(err) {
			t.Errorf("%v, want NotFound", err)
		}
		a.put("secrets", "a", "t")
		synctest.Wait()
		if all, err := l.List("", nil); err != nil || len(all) != 2 {
			t.Errorf("%d objects, %v", len(all), err)
		}
		a.drop()
		w.after(5 * time.Second)
		w.is(l, watchset.Synced)
		a.put("secrets", "a", "u")
		synctest.Wait()
		if w.is(l, watchset.Synced).Objects != 3 {
			t.Error("the new stream brings nothing")
		}
	})
}

func TestClusterScopedInANamespace(t *testing.T) {
	a := newAPI()
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(watchset.Request{Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Scope: watchset.Namespace("a")})
		if err := w.is(l, watchset.NotServed).Err; err == nil || !meta.IsNoMatchError(err) {
			t.Error(err)
		}
	})
}

func TestIdleGrace(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	bubble(t, a, quiet(), func(w *world) {
		w.lease(in("a")).Release()
		w.after(20 * time.Second)
		l := w.lease(in("a"))
		w.is(l, watchset.Synced)
		w.after(time.Minute)
		if n := a.count("", ""); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		l.Release()
		l.Release()
		if _, err := l.Get(types.NamespacedName{Namespace: "a", Name: "s"}); !errors.Is(err, watchset.ErrReleased) {
			t.Error(err)
		}
		w.after(31 * time.Second)
		if n := a.open(); n != 0 || len(w.Informers()) != 0 {
			t.Errorf("%d streams, %v", n, w.Informers())
		}
	})
}

func TestLimits(t *testing.T) {
	a := newAPI(both("secrets", "*")...)
	o := quiet()
	o.MaxInformers, o.MaxNamespaces, o.IdleGrace = 3, 2, ptr.To(time.Duration(0))
	bubble(t, a, o, func(w *world) {
		set := watchset.NewNamespaceSet("d", "c", "b")
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespaces(set)})
		w.is(l, watchset.Pending)
		if status := l.StatusFor("d"); !errors.Is(status.Err, watchset.ErrLimit) {
			t.Error(status.Err)
		}
		var partial *watchset.PartialError
		if err := l.Wait(t.Context()); !errors.As(err, &partial) || !errors.Is(partial.Namespaces["d"], watchset.ErrLimit) {
			t.Error(err)
		}
		other, last := w.lease(in("x")), w.lease(in("y"))
		w.is(other, watchset.Synced)
		if err := last.Wait(t.Context()); !errors.Is(err, watchset.ErrLimit) {
			t.Error(err)
		}
		set.Remove("b")
		synctest.Wait()
		w.is(l, watchset.Synced)
		w.is(last, watchset.Pending)
		set.Remove("c")
		synctest.Wait()
		w.is(last, watchset.Synced)
	})
}

func TestOfTwoSessionsTheLaterWins(t *testing.T) {
	a := newAPI(both("secrets", "*")...)
	bubble(t, a, quiet(), func(w *world) {
		before := w.lease(in("c"))
		earlier, later := w.Session(owner("x")), w.Session(owner("x"))
		old, _ := earlier.Acquire(in("a"))
		l, _ := later.Acquire(in("b"))
		synctest.Wait()
		earlier.Commit()
		w.is(l, watchset.Synced)
		w.is(old, watchset.Synced)
		w.is(before, watchset.Synced)
		later.Commit()
		w.is(l, watchset.Synced)
		if _, err := old.List("", nil); !errors.Is(err, watchset.ErrReleased) {
			t.Error(err)
		}
	})
}

// INF-I29: the next watch doesn't report changes that came while the watch was down. A list finds them.
func TestHistoryIsGone(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	a.put("secrets", "a", "t")
	bubble(t, a, quiet(), func(w *world) {
		events := w.listen(secrets)
		l := w.lease(in("a"))
		events.want("create a/s", "create a/t")
		a.do(func() { a.down = true })
		a.drop()
		w.after(2 * time.Second)
		a.remove("secrets", "a", "s")
		a.put("secrets", "a", "u")
		a.do(func() { a.down, a.oldest = false, a.version })
		w.after(20 * time.Second)
		w.is(l, watchset.Synced)
		events.want("create a/u", "delete a/s")
		if len(w.lines) != 1 {
			t.Errorf("log lines: %q, want one", w.lines)
		}
	})
}

func TestStopsWhileItBacksOff(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	bubble(t, a, quiet(), func(w *world) {
		a.do(func() { a.throttles = true })
		l := w.lease(in("a"))
		w.after(20 * time.Second)
		w.is(l, watchset.Syncing)
		began := time.Now()
		t.Cleanup(func() {
			if took := w.stopped.Sub(began); took > time.Second {
				t.Errorf("it took %s to stop", took)
			}
		})
	})
}

func TestStartAndStop(t *testing.T) {
	if _, err := watchset.New(nil, watchset.Options{}); err == nil {
		t.Error("a nil rest.Config is taken")
	}
	if _, err := watchset.New(newAPI().config(), watchset.Options{MaxInformers: -1}); err == nil {
		t.Error("a negative number is taken")
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := watchset.New(newAPI(both("secrets", "a")...).config(), watchset.Options{Logger: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Acquire(owner("x"), in("a"))
		if err != nil || l.Status().State != watchset.Pending {
			t.Fatal(err, l.Status())
		}
		if _, err := l.List("", nil); !errors.Is(err, watchset.ErrNotSynced) {
			t.Error(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Start(ctx) }()
		if err := l.Wait(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Start(ctx); !errors.Is(err, watchset.ErrStarted) {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := s.Acquire(owner("x"), in("b")); !errors.Is(err, watchset.ErrStopped) {
			t.Error(err)
		}
	})
}

func TestRequestsAreChecked(t *testing.T) {
	s, err := watchset.New(newAPI().config(), watchset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := fields.OneTermEqualSelector("metadata.name", "s")
	for field, r := range map[string]watchset.Request{
		"resource.resource": {Resource: schema.GroupVersionResource{Version: "v1"}},
		"resource.version":  {Resource: schema.GroupVersionResource{Resource: "secrets"}},
		"scope.namespace":   in(""),
		"scope.name":        {Resource: secrets, Scope: watchset.Object("a", "")},
		"scope.set":         {Resource: secrets, Scope: watchset.Namespaces(nil)},
		"form":              {Resource: secrets, Form: "x"},
		"fieldSelector":     {Resource: secrets, Scope: watchset.Object("a", "s"), FieldSelector: named},
		"labelSelector":     {Resource: secrets, LabelSelector: labels.Nothing()},
		"resource and kind": {},
		"kind are set":      {Resource: secrets, Kind: kindOfSecrets},
		"kind.kind":         {Kind: schema.GroupVersionKind{Version: "v1"}},
	} {
		t.Run("INF-I54 Acquire of a Request with one fault returns ErrInvalid with the field's name: "+field, func(t *testing.T) {
			if _, err := s.Acquire(owner("x"), r); !errors.Is(err, watchset.ErrInvalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("%v, want ErrInvalid that names %s", err, field)
			}
		})
	}
}
