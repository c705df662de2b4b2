package exporter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// door answers lists and watches without objects; while shut is set, it refuses them.
type door struct {
	client.WithWatch
	shut    atomic.Bool
	watches chan openWatch
}

// openWatch is a watch of one kind, and an object of that kind.
type openWatch struct {
	*watch.FakeWatcher
	object client.Object
}

func (d *door) refusal() error {
	if !d.shut.Load() {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("the role is gone"))
}

func (d *door) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion("1")
	return d.refusal()
}

func (d *door) Watch(_ context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if err := errors.Join(d.refusal(), refuseStream(options)); err != nil {
		return nil, err
	}
	w := watch.NewFake()
	object := watchedKinds()[0].object
	if _, ok := list.(*v1alpha1.LNamespaceList); ok {
		object = &v1alpha1.LNamespace{}
	}
	d.watches <- openWatch{w, object}
	return w, nil
}

// refuseStream returns the answer of an API server that cannot stream a list, if these options ask for one.
func refuseStream(options []client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if ptr.Deref(o.Raw.SendInitialEvents, false) {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return nil
}

// until waits until holds returns true, and fails after a minute.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// seeing returns an exporter that watches through a door, and has read everything.
func seeing(t *testing.T) (*broken, *door) {
	t.Helper()
	x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
	d := &door{watches: make(chan openWatch, 100)}
	x.tracker = newTracker("c", forest.Rules{}, d, x.clock.Now)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = x.tracker.Start(ctx) }()
	until(t, "nothing was read", x.tracker.isReady)
	return x, d
}

func TestBlind(t *testing.T) {
	t.Run("BILL-78 the exporter may not watch: the watermark stops until it may; an Event and Pending report the error", func(t *testing.T) {
		x, d := seeing(t)
		watermark := func() time.Time {
			x.runDue(t.Context())
			at, err := x.store.CompleteUntil(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		x.runDue(t.Context()) // compares
		began := x.clock.Now().Add(-sightMargin)
		until(t, "no watermark", func() bool { return watermark().Equal(began) })

		d.shut.Store(true)
		for range 2 {
			(<-d.watches).Stop()
		}
		until(t, "the refusal isn't noted", func() bool { _, trouble := x.tracker.findConfirmed(); return trouble != nil })
		x.clock.SetTime(x.clock.Now().Add(30 * 24 * time.Hour))
		blind := func() error {
			x.runDue(t.Context())
			_, _, _, err := x.readState()
			return err
		}
		until(t, "nobody notices", func() bool { return blind() != nil })
		if at := watermark(); !at.Equal(began) {
			t.Errorf("complete until %s, though nothing was seen since %s", at, began)
		}
		c := situation{backlog: &backlog{}, compared: true, blind: blind()}.buildCondition("t1", 0)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonPending) || !strings.Contains(c.Message,
			"the role is gone") {
			t.Errorf("tenants are told %+v", c)
		}
		if event := <-x.events.(*record.FakeRecorder).Events; !strings.Contains(event, "the exporter can't watch the cluster: ") ||
			!strings.Contains(event, "complete until 2026-03-01T0") {
			t.Errorf("Event %q", event)
		}

		d.shut.Store(false)
		until(t, "the watermark doesn't go on", func() bool { return watermark().After(began) })
		if err := blind(); err != nil {
			t.Errorf("still blind: %v", err)
		}
	})
}

func TestSilence(t *testing.T) {
	t.Run("BILL-84 an open watch is silent for an hour: the error has the time of the last message; a bookmark ends it", func(t *testing.T) {
		x, d := seeing(t)
		blind := func() error {
			x.runDue(t.Context())
			_, _, _, err := x.readState()
			return err
		}
		if err := blind(); err != nil {
			t.Fatal(err)
		}
		open := []openWatch{<-d.watches, <-d.watches}
		x.clock.SetTime(x.clock.Now().Add(time.Hour))
		if err := blind(); err == nil || !strings.Contains(err.Error(), "has sent nothing on it since 2026-03-01T09:00:00Z") {
			t.Errorf("got %v", err)
		}
		for _, w := range open {
			w.object.SetResourceVersion("2")
			w.Action(watch.Bookmark, w.object)
		}
		until(t, "a bookmark doesn't count", func() bool { return blind() == nil })
	})
}

func TestHeldEnds(t *testing.T) {
	t.Run("BILL-85 the watermark does not pass a loss while its ENDs wait; then they have the time of its discovery", func(t *testing.T) {
		x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
		watermark := func(after time.Duration) time.Time {
			x.clock.SetTime(x.clock.Now().Add(after))
			x.see()
			x.runDue(t.Context())
			return x.watermark(t)
		}
		watermark(time.Minute)
		held := x.clock.Now().Add(time.Hour)
		x.clock.SetTime(held)
		x.tracker.takeChange(&tenantFacts{name: "pay", uid: "t1"}, true)
		for range 2 {
			if at := watermark(10 * time.Minute); at.After(held) {
				t.Errorf("complete until %s, though ENDs of %s are held back", at, held)
			}
		}
		if c := x.condition(t); c == nil || c.Status != metav1.ConditionTrue { // an hour's patience
			t.Logf("the tenant is told %+v", c)
		}
		if at := watermark(2 * time.Hour); !at.After(held) {
			t.Errorf("complete until %s, though nothing is held back any more", at)
		}
		for _, p := range x.history(t) {
			if !p.ValidTo.Equal(held) {
				t.Errorf("%s is billed until %s, not %s", p.Namespace, p.ValidTo, held)
			}
		}
	})
	for name, restarts := range map[string]bool{"BILL-22 a truncated list ends no period": false, "BILL-22 at a restart it ends none": true} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ledger.db")
			x := exporterOver(t, file)
			x.runDue(t.Context())
			all := x.tracker.cluster.listFacts(&namespaceFacts{})
			x.clock.SetTime(x.clock.Now().Add(time.Minute))
			if restarts {
				at := x.clock.Now()
				x = exporterOver(t, file)
				x.clock.SetTime(at)
				x.tracker.began = time.Time{}
			}
			x.tracker.replaceAll(&namespaceFacts{}, all[:1])
			x.tracker.beginTracking()
			for range 3 {
				x.see()
				x.runDue(t.Context())
				x.clock.SetTime(x.clock.Now().Add(5 * time.Minute))
			}
			x.tracker.replaceAll(&namespaceFacts{}, all)
			x.compareTwice(t)
			x.wantWhole(t)
		})
	}
}

// Between two comparisons, more namespaces leave their tenant than may at once, one every 10 s.
func TestEndsThatWait(t *testing.T) {
	t.Run("BILL-87 namespaces leave one by one: the watermark waits for the first END, and each END has its own time", func(t *testing.T) {
		x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
		began := x.clock.Now()
		x.runDue(t.Context())
		const leave, pause = crowd/5 + 3, 10 * time.Second
		left := map[string]time.Time{}
		for i := 1; i <= leave; i++ {
			n := &forest.Namespace{Name: fmt.Sprintf("pay-%d", i), UID: fmt.Sprint("n", i)}
			left[n.Name] = began.Add(time.Duration(i) * pause)
			x.clock.SetTime(left[n.Name])
			x.tracker.takeChange(&namespaceFacts{Namespace: n, made: began}, false)
			x.runDue(t.Context())
		}
		x.clock.SetTime(began.Add(leave*pause + 10*time.Minute))
		x.tracker.takeChange(x.tracker.cluster.namespaces[fmt.Sprint("pay-", leave)], true)
		x.see()
		x.runDue(t.Context())
		var first time.Time // of the changes whose ENDs wait
		for _, p := range x.history(t) {
			if at, ok := left[p.Namespace]; ok && p.ValidTo.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		if first.IsZero() || x.watermark(t).After(first) {
			t.Errorf("complete until %s, though a namespace that left at %s has no END", x.watermark(t), first)
		}
		x.see()
		x.compareTwice(t)
		for _, p := range x.history(t) {
			if !p.ValidTo.Equal(left[p.Namespace]) {
				t.Errorf("%s is billed until %s, though it left at %s", p.Namespace, p.ValidTo, left[p.Namespace])
			}
		}
	})
}

// watermark returns the ledger's watermark.
func (x *broken) watermark(t *testing.T) time.Time {
	t.Helper()
	at, err := x.store.CompleteUntil(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		asked   bool
		periods int
	}{
		"BILL-79 an exporter that gets SIGTERM first writes the change that it has seen":     {true, crowd + 1},
		"BILL-79 an exporter that lost its Lease does not write the change that it has seen": {false, crowd},
	} {
		t.Run(name, func(t *testing.T) {
			x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
			x.runDue(t.Context())
			x.flushEvery, x.askedToEnd = time.Hour, func() bool { return c.asked }
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the loop ends before its first step
			x.tracker.takeChange(&namespaceFacts{Namespace: &forest.Namespace{Name: "late", UID: "late",
				Labels: map[string]string{v1alpha1.LabelParent: "pay"}}, made: x.clock.Now()}, false)
			if err := x.Start(ctx); err != nil {
				t.Fatal(err)
			}
			if periods := x.history(t); len(periods) != c.periods {
				t.Errorf("%d periods; wanted %d", len(periods), c.periods)
			}
		})
	}
}

// A new namespace above an old one, and a new LNamespace above both, don't move the old one's period back in time.
func TestOldNamespaceBelowNewOnes(t *testing.T) {
	t.Run("BILL-80 a namespace older than its parent is billed from the parent's creation, a newer one from its own", func(t *testing.T) {
		x := exporterOver(t, filepath.Join(t.TempDir(), "ledger.db"))
		x.runDue(t.Context())
		began := x.clock.Now()
		below := func(name, parent string, made time.Time) {
			x.tracker.takeChange(&namespaceFacts{Namespace: &forest.Namespace{Name: name, UID: name,
				Labels: map[string]string{v1alpha1.LabelParent: parent}}, made: made}, false)
		}
		below("old", "mid", began)
		x.clock.SetTime(began.Add(365 * 24 * time.Hour))
		now := x.clock.Now()
		below("young", "mid", now.Add(time.Second))
		below("mid", "pay", now)
		x.runDue(t.Context())
		from := map[string]time.Time{}
		for _, p := range x.history(t) {
			from[p.Namespace] = p.ValidFrom
		}
		for name, want := range map[string]time.Time{"old": now, "mid": now, "young": now.Add(time.Second)} {
			if !from[name].Equal(want) {
				t.Errorf("BILL-80 %s is billed from %s, wanted %s", name, from[name], want)
			}
		}
	})
}

// A first change came while the exporter didn't run. A second one comes while the ledger can't be read yet.
func TestValueBeforeTheFirstComparison(t *testing.T) {
	t.Run("BILL-86 a value that changed again before the first comparison has a period, from its recorded time on", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ledger.db")
		x := exporterOver(t, file)
		began := x.clock.Now()
		x.runDue(t.Context())

		x = exporterOver(t, file)
		costs := func(center string, generation int64, since time.Time) {
			x.tracker.takeChange(&tenantFacts{name: "pay", uid: "t1", generation: generation, since: since, costCenter: center}, false)
		}
		x.tracker.began = time.Time{}
		costs("4712", 2, began.Add(30*time.Minute)) // as the operator has recorded it
		x.clock.SetTime(began.Add(time.Hour))
		x.tracker.beginTracking()
		x.clock.SetTime(began.Add(2 * time.Hour))
		costs("4713", 3, began.Add(2*time.Hour))
		x.clock.SetTime(began.Add(3 * time.Hour))
		x.tracker.takeChange(&namespaceFacts{Namespace: &forest.Namespace{Name: "pay-1", UID: "n1"}}, true)
		x.compareTwice(t)
		got := map[string][]string{}
		for _, p := range x.history(t) {
			end := "open"
			if !p.ValidTo.IsZero() {
				end = p.ValidTo.Sub(began).String()
			}
			got[p.Namespace] = append(got[p.Namespace], fmt.Sprintf("%s %s %s", p.CostCenter, p.ValidFrom.Sub(began), end))
		}
		for namespace, want := range map[string][]string{
			"pay-1": {"4711 0s 30m0s", "4712 30m0s 2h0m0s", "4713 2h0m0s 3h0m0s"},
			"pay-2": {"4711 0s 30m0s", "4712 30m0s 2h0m0s", "4713 2h0m0s open"},
		} {
			if diff := cmp.Diff(want, got[namespace]); diff != "" {
				t.Errorf("BILL-86 %s: %s", namespace, diff)
			}
		}
	})
}

func TestCauseOfWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		failure error
		want    string
	}{
		"another exporter leads": {nil, "needs one replica: another exporter holds Lease"},
		"no rights": {apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "x", errors.New("no rights")),
			"can't take Lease warren-billing-exporter: leases \"x\" is forbidden: no rights"},
		"no API server": {fmt.Errorf("dial tcp 127.0.0.1:1: connection refused"), "connection refused; give its account the rights"},
	} {
		t.Run("BILL-81 an exporter with driver sqlite that can't take the Lease ends; its error names the cause: "+name, func(t *testing.T) {
			o := &onlyOne{elected: make(chan struct{}), path: "f", failure: func() error { return c.failure }}
			if err := o.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestChurn(t *testing.T) {
	t.Run("BILL-82 an error that differs only in counts, ports or job IDs rewrites no status; another cause does", func(t *testing.T) {
		say := func(was, now string) bool {
			told := newExported(false, v1alpha1.ReasonWarehouseUnavailable, was)
			return needsWrite(told, newExported(false, v1alpha1.ReasonWarehouseUnavailable, now), 0)
		}
		const at = "appending %d events to ledger: job warren-0d21e2c4-0000-4000-8000-000000000001: dial tcp 10.0.0.1:%d: %s"
		if say(fmt.Sprintf(at, 101, 40001, "refused"), fmt.Sprintf(strings.Replace(at, "0001:", "0002:", 1), 102, 40002, "refused")) {
			t.Error("BILL-82 counts and names rewrite the status")
		}
		if !say(fmt.Sprintf(at, 101, 40001, "refused"), fmt.Sprintf(at, 101, 40001, "timed out")) {
			t.Error("BILL-82 another cause isn't told")
		}
	})
}
