package watchset_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// diary is a Sink that records its calls.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Replace(namespace, _ string, all []client.Object) {
	names := []string{}
	for _, object := range all {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	d.write("%s holds %v", namespace, names)
}
func (d *diary) Put(object client.Object) {
	d.write("put %s/%s", object.GetNamespace(), object.GetName())
}
func (d *diary) Gone(object client.Object) {
	d.write("gone %s/%s", object.GetNamespace(), object.GetName())
}

func (d *diary) State(namespace string, now watchset.Status) {
	if errors.Is(now.Err, watchset.ErrLimit) {
		d.write("%s is %s: no room", namespace, now.State)
		return
	}
	d.write("%s is %s", namespace, now.State)
}

// read returns the calls since the last read.
func (d *diary) read() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func TestSink(t *testing.T) {
	t.Run("INF-I71 a Sink gets Syncing, Replace, Synced, then each event; a lost right is Forbidden, another UID begins anew, ErrLimit is "+
		"Pending; reads of its lease return ErrInvalid", sinkIsTold)
	t.Run("INF-I73 when Auto widens, a Sink gets the cluster's Replace and Synced before a is Pending; when it narrows, the cluster is "+
		"Forbidden before a begins", sinkFollowsAuto)
	t.Run("INF-I77 with list alone, reviews allowed or refused, a Sink gets Syncing and Forbidden in turn; at most 30 lists in half an "+
		"hour; with watch, Replace and Synced", sinkSeesNoListAlone)
	t.Run("INF-I93 a request FromNow lists one object at most, and its Sink gets only what happens later",
		sinkBeginsFromNow)
	t.Run("INF-I94 a Sink that trims gets each object as Trim has returned it", sinkTrims)
}

// told checks that these are the calls since the last read.
func (d *diary) told(t *testing.T, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, d.read()); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", when, diff)
	}
}

func sinkIsTold(t *testing.T) {
	a := newAPI("list secrets a", "watch secrets a", "list secrets b", "watch secrets b")
	a.put("secrets", "a", "one")
	bubble(t, a, watchset.Options{WatchRBAC: watchset.Off, MaxNamespaces: 1}, func(w *world) {
		is := func(what string, d *diary, want ...string) { t.Helper(); d.told(t, what, want...) }
		d, set := &diary{}, watchset.NewNamespaceSet()
		set.Add("a", "1")
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespaces(set), Sink: d})
		is("a lease is taken", d, "a is Syncing", "a holds [one]", "a is Synced")
		a.put("secrets", "a", "two")
		a.remove("secrets", "a", "one")
		is("objects come and go", d, "put a/two", "gone a/one")

		a.revoke("list secrets a", "watch secrets a")
		w.Poke()
		time.Sleep(time.Second)
		is("the right is lost", d, "a is Forbidden")
		a.put("secrets", "a", "three")
		a.grant("list secrets a", "watch secrets a")
		time.Sleep(10 * time.Second)
		is("the right is back", d, "a is Syncing", "a holds [three two]", "a is Synced")

		set.Replace(map[string]types.UID{"a": "2"})
		is("another namespace of that name", d, "a is Pending", "a is Syncing", "a holds [three two]", "a is Synced")
		set.Add("b", "1")
		is("one more than there is room for", d, "b is Pending: no room")
		set.Remove("a")
		is("room is made", d, "a is Pending", "b is Syncing", "b holds []", "b is Synced")

		if _, err := l.Get(types.NamespacedName{Namespace: "b", Name: "x"}); !errors.Is(err, watchset.ErrInvalid) {
			t.Errorf("Get: %v, want ErrInvalid", err)
		}
		if _, err := l.List("b", nil); !errors.Is(err, watchset.ErrInvalid) {
			t.Errorf("List: %v, want ErrInvalid", err)
		}
		l.Release()
		is("the lease is released", d, "b is Pending")
	})
}

func sinkBeginsFromNow(t *testing.T) {
	a := newAPI("list secrets a", "watch secrets a")
	a.put("secrets", "a", "one")
	a.put("secrets", "a", "two")
	bubble(t, a, watchset.Options{WatchRBAC: watchset.Off}, func(w *world) {
		d := &diary{}
		w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespace("a"), Sink: d, FromNow: true})
		d.told(t, "a lease is taken", "a is Syncing", "a holds []", "a is Synced")
		a.put("secrets", "a", "three")
		d.told(t, "an object is made", "put a/three")
		if limits := a.limits(); len(limits) != 1 || limits[0] != "1" {
			t.Errorf("lists with limits %q, want one list with limit 1", limits)
		}
		if _, err := w.Acquire(watchset.Static("x"), watchset.Request{Resource: secrets, FromNow: true}); !errors.Is(err, watchset.ErrInvalid) {
			t.Errorf("without a Sink: %v, want ErrInvalid", err)
		}
	})
}

// trimming is a Sink whose objects have a label of its own.
type trimming struct{ diary }

func (s *trimming) Trim(object client.Object) client.Object {
	object.SetLabels(map[string]string{"trimmed": object.GetName()})
	return object
}

func (s *trimming) Put(object client.Object) {
	s.write("put %v", object.GetLabels())
}

func (s *trimming) Replace(_, _ string, all []client.Object) {
	for _, object := range all {
		s.write("holds %v", object.GetLabels())
	}
}

func sinkTrims(t *testing.T) {
	a := newAPI("list secrets a", "watch secrets a")
	a.put("secrets", "a", "one")
	bubble(t, a, watchset.Options{WatchRBAC: watchset.Off}, func(w *world) {
		s := &trimming{}
		w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespace("a"), Sink: s})
		s.told(t, "a lease is taken", "a is Syncing", "holds map[trimmed:one]", "a is Synced")
		a.put("secrets", "a", "two")
		s.told(t, "an object is made", "put map[trimmed:two]")
	})
}

// When Auto changes from namespaces to the cluster, the Sink gets the cluster's objects before the namespaces become Pending. When it
// changes back, the cluster becomes Forbidden before the namespaces begin.
func sinkFollowsAuto(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "one")
	a.put("secrets", "b", "other")
	bubble(t, a, quiet(), func(w *world) {
		d := &diary{}
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet("a")), Sink: d})
		d.told(t, "a lease is taken", " is Syncing", " is Forbidden", "a is Syncing", "a holds [one]", "a is Synced")
		a.grant(both("secrets", "*")...)
		w.Poke()
		time.Sleep(time.Second)
		d.told(t, "more is granted", " is Syncing", " holds [one other]", " is Synced", "a is Pending")
		a.put("secrets", "b", "two")
		d.told(t, "an object comes", "put b/two")
		a.revoke(both("secrets", "*")...)
		w.Poke()
		time.Sleep(time.Second)
		d.told(t, "the right is taken", " is Forbidden", "a is Syncing", "a holds [one]", "a is Synced")
		a.put("secrets", "b", "three")
		d.told(t, "an object comes where nothing is seen")
		l.Release()
		d.read()
	})
}

// If list is allowed and watch is not, the Sink gets no objects, and its state stays the same however often the informer tries.
func sinkSeesNoListAlone(t *testing.T) {
	for name, refuses := range map[string]bool{"reviews allowed": false, "reviews refused": true} {
		t.Run(name, func(t *testing.T) {
			a := newAPI("list secrets a")
			a.refuses = refuses
			a.put("secrets", "a", "one")
			bubble(t, a, quiet(), func(w *world) {
				d := &diary{}
				l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespaces(watchset.NewNamespaceSet("a")), Sink: d})
				time.Sleep(30 * time.Minute)
				for i, line := range d.read() {
					if want := []string{"a is Syncing", "a is Forbidden"}[i%2]; line != want {
						t.Errorf("line %d is %q, want %q", i, line, want)
					}
				}
				if n := a.count("list", "secrets"); n > 30 {
					t.Errorf("%d lists in half an hour", n)
				}
				a.grant("watch secrets a")
				w.Poke()
				time.Sleep(10 * time.Minute)
				if lines := d.read(); len(lines) < 2 || lines[len(lines)-2] != "a holds [one]" || lines[len(lines)-1] != "a is Synced" {
					t.Errorf("watch is allowed: %q", lines)
				}
				l.Release()
			})
		})
	}
}
