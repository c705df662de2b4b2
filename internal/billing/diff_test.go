package billing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/warren-tenancy/warren/internal/billing"
)

// cc returns the billing values of namespace payments, the root of tenant payments: this cost center, since that time.
func cc(generation int64, costCenter string, since time.Time) billing.Desired {
	return billing.Desired{NamespaceUID: "n1", Tenant: "payments", TenantUID: "t1", Generation: generation, CostCenter: costCenter,
		Owner: "ann@example.com",
		Since: since}
}

// compare returns a comparison at 10 o'clock that knows everything desired.
func compare(desired map[string]billing.Desired, open []billing.Open) billing.Comparison {
	return billing.Comparison{Cluster: cluster, Desired: desired, Complete: true, Seen: at(60), Open: open}
}

// openIn returns the open periods of a ledger.
func openIn(t testing.TB, store *billing.Store) []billing.Open {
	t.Helper()
	open, err := store.OpenPeriods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// reconciled compares and appends; if ENDs were held back, it compares a second time before. Another comparison must then find nothing.
func reconciled(t *testing.T, store *billing.Store, desired map[string]billing.Desired) {
	t.Helper()
	plan := billing.Diff(compare(desired, openIn(t, store)))
	if len(plan.Held) > 0 {
		c := compare(desired, openIn(t, store))
		c.Held = plan.Held
		plan = billing.Diff(c)
	}
	latest, err := store.Latest(t.Context(), plan.Namespaces())
	if err != nil {
		t.Fatal(err)
	}
	appended(t, store, plan.After(latest).Events()...)
	if again := billing.Diff(compare(desired, openIn(t, store))); len(again.Events())+len(again.Held) != 0 {
		t.Errorf("the second plan is not empty: %v, held %v", again.Events(), again.Held)
	}
}

type world = map[string]billing.Desired

func TestDiffOnEngines(t *testing.T) {
	other := cc(1, "B", at(5))
	other.Tenant, other.TenantUID = "shop", "t2"
	reborn := cc(1, "B", at(30))
	reborn.TenantUID, reborn.NamespaceUID = "t2", "n2"
	sameTenant := cc(1, "A", at(30))
	sameTenant.NamespaceUID = "n2"
	labelled := cc(2, "A", at(5))
	labelled.Labels = map[string]string{"team": "web"}
	moved := other
	moved.Since = at(20)
	for name, c := range map[string]struct {
		worlds []world
		want   []string
	}{
		"BILL-01 made, changed, gone, made again": {[]world{{"payments": cc(1, "A", at(0))}, {"payments": cc(2, "B", at(5))}, {},
			{"payments": func() billing.Desired { d := reborn; d.Since = at(90); return d }()}},
			[]string{"A 0s 5m0s", "B 5m0s 1h0m0s", "B 1h30m0s open"}},
		"BILL-06 made again, the deletion was never seen": {[]world{{"payments": cc(4, "A", at(0))}, {"payments": reborn}},
			[]string{"A 0s 30m0s", "B 30m0s open"}},
		"BILL-07 two generations in one second": {[]world{{"payments": cc(1, "A", at(0))}, {"payments": cc(2, "B", at(0))}},
			[]string{"A 0s 1µs", "B 1µs open"}},
		"BILL-08 falling stamps": {[]world{{"payments": cc(1, "A", at(2))}, {"payments": cc(2, "B", at(1))}, {"payments": cc(3, "C", at(0))}},
			[]string{"A 2m0s 2m0.000001s", "B 2m0.000001s 2m0.000002s", "C 2m0.000002s open"}},
		// The comparison is an hour after nine. By the API server's clock, the tenant came back already at 9:30.
		"BILL-08 our clock is ahead, another takes over": {[]world{{"payments": cc(1, "A", at(0))}, {}, {"payments": reborn}},
			[]string{"A 0s 1h0m0s", "B 1h0m0.000001s open"}},
		"BILL-08 our clock is ahead, the same tenant takes it back": {[]world{{"payments": cc(1, "A", at(0))}, {},
			{"payments": cc(1, "A", at(30))}},
			[]string{"A 0s 1h0m0s", "A 1h0m0.000001s open"}},
		"BILL-08 our clock is ahead, and an end stays whatever follows": {[]world{{"payments": cc(1, "A", at(0))}, {},
			{"payments": cc(1, "A", at(30))}, {"payments": cc(2, "B", at(40))}, {}, {"payments": reborn}},
			[]string{"A 0s 1h0m0s", "A 1h0m0.000001s 1h0m0.000002s", "B 1h0m0.000002s 1h0m0.000003s", "B 1h0m0.000004s open"}},
		"BILL-08 our clock is ahead of all that the API server recorded": {[]world{{"payments": cc(1, "A", at(0))},
			{"payments": cc(2, "B", at(20))}, {"payments": cc(3, "C", at(30))}},
			[]string{"A 0s 20m0s", "B 20m0s 30m0s", "C 30m0s open"}},
		"away to another tenant and back in one second": {[]world{{"payments": cc(1, "A", at(5))}, {"payments": other},
			{"payments": cc(1, "A", at(5))}},
			[]string{"A 5m0s 1h0m0s", "A 1h0m0.000001s open"}},
		"BILL-27 a change of labels isn't dated before it": {[]world{{"payments": cc(1, "A", at(5))}, {"payments": labelled}},
			[]string{"A 5m0s 1h0m0s", "A 1h0m0s open"}},
		"BILL-27 a move isn't dated by the stamp of the tenant it came to": {[]world{{"payments": cc(1, "A", at(5))}, {"payments": moved}},
			[]string{"A 5m0s 1h0m0s"}},
		"BILL-28 made again under its name, of the same tenant, while nobody watched": {[]world{{"payments": cc(1, "A", at(0))},
			{"payments": sameTenant}},
			[]string{"A 0s 30m0s", "A 30m0s open"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, e engine) {
				store := e.ledger(t)
				for _, w := range c.worlds {
					reconciled(t, store, w)
				}
				if diff := cmp.Diff(c.want, bounds(t, store, "payments")); diff != "" {
					t.Error(diff)
				}
				last := c.worlds[len(c.worlds)-1]["payments"]
				if periods, err := store.History(t.Context(), "payments"); err != nil || last.Tenant == "payments" &&
					periods[len(periods)-1].NamespaceUID != last.NamespaceUID {
					t.Errorf("the last period is of namespace %q, want %q: %v", periods[len(periods)-1].NamespaceUID, last.NamespaceUID, err)
				}
			})
		})
	}
}

// A namespace that came to its tenant unseen is billed from the comparison that sees it. If it was made after the watermark, or before
// there was any ledger, it is billed from its creation. A period that has ended never changes.
func TestNamespaceThatCameUnseen(t *testing.T) {
	other := func(made time.Time) billing.Desired {
		d := cc(1, "B", at(-600))
		d.TenantUID, d.Made = "t2", made
		return d
	}
	for name, c := range map[string]struct {
		before        []world
		completeUntil time.Time
		now           billing.Desired
		want          []string
	}{
		"BILL-77 that another tenant had": {[]world{{"payments": cc(1, "A", at(0))}, {}}, at(70), other(at(-600)),
			[]string{"A 0s 1h0m0s", "B 2h0m0s open"}},
		"BILL-77 that another tenant had, and no watermark": {[]world{{"payments": cc(1, "A", at(0))}, {}}, time.Time{}, other(at(-600)),
			[]string{"A 0s 1h0m0s", "B 2h0m0s open"}},
		"BILL-77 that no tenant had": {nil, at(70), other(at(-600)), []string{"B 2h0m0s open"}},
		"BILL-77 made since": {nil, at(70), func() billing.Desired { d := other(at(80)); d.Since = at(80); return d }(),
			[]string{"B 1h20m0s open"}},
		"BILL-77 before there was any ledger": {nil, time.Time{}, func() billing.Desired { d := other(at(5)); d.Since = at(5); return d }(),
			[]string{"B 5m0s open"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, e engine) {
				store := e.ledger(t)
				for _, w := range c.before {
					reconciled(t, store, w)
				}
				comparison := compare(world{"payments": c.now}, openIn(t, store))
				comparison.Seen, comparison.CompleteUntil = at(120), c.completeUntil
				plan := billing.Diff(comparison)
				latest, err := store.Latest(t.Context(), plan.Namespaces())
				if err != nil {
					t.Fatal(err)
				}
				appended(t, store, plan.After(latest).Events()...)
				if diff := cmp.Diff(c.want, bounds(t, store, "payments")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// After each comparison, whatever has changed, the open periods are those of the last world, and a second plan is empty.
func TestDiffConverges(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-02 a second comparison finds nothing", func(t *testing.T) {
			store := e.ledger(t)
			random := rand.New(rand.NewPCG(1, 2))
			for range 12 {
				w := world{}
				for i := range 12 {
					if random.IntN(4) == 0 {
						continue
					}
					tenant := fmt.Sprint("t", random.IntN(3))
					// The times are whole minutes in any order: some go back, and several changes may have the same one.
					w[fmt.Sprint("n", i)] = billing.Desired{NamespaceUID: fmt.Sprint("u", random.IntN(2)), Tenant: tenant, TenantUID: tenant,
						Generation: int64(random.IntN(5)), CostCenter: fmt.Sprint(random.IntN(3)), Since: at(float64(random.IntN(120)))}
				}
				reconciled(t, store, w)
				open := map[string]string{}
				for _, period := range openIn(t, store) {
					open[period.Namespace] = period.TenantUID
				}
				want := map[string]string{}
				for namespace, desired := range w {
					want[namespace] = desired.TenantUID
				}
				if diff := cmp.Diff(want, open); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	})
}

// opened returns n open periods of tenants, and the world from which they follow.
func opened(n int) ([]billing.Open, world) {
	open, w := make([]billing.Open, n), world{}
	for i, event := range tenants(n) {
		event = event.Sealed()
		open[i] = billing.Open{Namespace: event.Namespace, NamespaceUID: event.NamespaceUID, Tenant: event.Tenant,
			TenantUID: event.TenantUID, Generation: 1,
			CostCenter: event.CostCenter, Owner: event.Owner, ContentHash: event.ContentHash, ValidFrom: event.EffectiveAt}
		w[event.Namespace] = billing.Desired{NamespaceUID: event.NamespaceUID, Tenant: event.Tenant, TenantUID: event.TenantUID, Generation: 1,
			CostCenter: event.CostCenter, Owner: event.Owner, Labels: event.Labels, Since: event.EffectiveAt}
	}
	return open, w
}

// without returns the world without the first gone of the open namespaces.
func (o lost) without() world {
	w := world{}
	for i, period := range o.open {
		if i >= o.gone {
			w[period.Namespace] = o.world[period.Namespace]
		}
	}
	return w
}

type lost struct {
	open  []billing.Open
	world world
	gone  int
}

func TestGuard(t *testing.T) {
	for name, c := range map[string]struct {
		open, gone   int
		ended, again int // how many periods the first and the second comparison end
	}{
		"BILL-22 30 % of 1,000 vanish at once": {open: 1000, gone: 300, again: 300},
		"BILL-22 one more than a fifth":        {open: 1000, gone: 201, again: 201},
		"a fifth":                              {open: 1000, gone: 200, ended: 200},
		"BILL-22 fifty, which is all":          {open: 50, gone: 50, again: 50},
		"BILL-22 two of three":                 {open: 3, gone: 2, again: 2},
		"one of one":                           {open: 1, gone: 1, ended: 1},
	} {
		t.Run(name, func(t *testing.T) {
			open, w := opened(c.open)
			first := compare(lost{open, w, c.gone}.without(), open)
			plan := billing.Diff(first)
			if len(plan.Ends) != c.ended || len(plan.Held) != c.gone-c.ended || len(plan.Sets) != 0 {
				t.Fatalf("first: %d ended, %d held, %d set", len(plan.Ends), len(plan.Held), len(plan.Sets))
			}
			if c.again == 0 {
				return
			}
			second := first
			second.Held, second.Seen = plan.Held, at(120)
			next := billing.Diff(second)
			if len(next.Ends) != c.again || len(next.Held) != 0 {
				t.Errorf("second: %d ended, %d held", len(next.Ends), len(next.Held))
			}
			if got := next.Ends[0].EffectiveAt; !got.Equal(at(60)) {
				t.Errorf("ended at %s, want when it was first seen", got)
			}
		})
	}
	open, w := opened(1000)
	held := billing.Diff(compare(lost{open, w, 300}.without(), open)).Held
	t.Run("BILL-22 they are back with the second comparison", func(t *testing.T) {
		c := compare(w, open)
		c.Held = held
		if plan := billing.Diff(c); len(plan.Events())+len(plan.Held) != 0 {
			t.Errorf("%d events, %d held", len(plan.Events()), len(plan.Held))
		}
	})
	t.Run("BILL-22 a restart doesn't let them through sooner", func(t *testing.T) {
		outbox := newOutbox(t, 10)
		if err := outbox.Hold(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		kept, err := outbox.Held(t.Context())
		if err != nil || len(kept) != 300 {
			t.Fatalf("%d are kept, error %v", len(kept), err)
		}
		c := compare(lost{open, w, 300}.without(), open)
		c.Held, c.HoldFor, c.Seen = kept, 30*time.Minute, at(70)
		plan := billing.Diff(c)
		if len(plan.Ends) != 0 || len(plan.Held) != 300 {
			t.Errorf("ten minutes later: %d ended, %d held, want none and 300", len(plan.Ends), len(plan.Held))
		}
		c.Held, c.Seen = plan.Held, at(90)
		if plan = billing.Diff(c); len(plan.Ends) != 300 || !plan.Ends[0].EffectiveAt.Equal(at(60)) {
			t.Errorf("half an hour later: %d ended, want 300 as of the first look", len(plan.Ends))
		}
	})
	t.Run("BILL-22 others vanish: each is agreed on by itself", func(t *testing.T) {
		c := compare(lost{open, w, 550}.without(), open)
		c.Held = held
		if plan := billing.Diff(c); len(plan.Ends) != 300 || len(plan.Held) != 250 {
			t.Errorf("%d ended, %d held, want 300 and 250", len(plan.Ends), len(plan.Held))
		}
	})
	t.Run("BILL-22 what isn't read yet isn't gone", func(t *testing.T) {
		c := compare(world{}, open)
		c.Complete = false
		if plan := billing.Diff(c); len(plan.Events())+len(plan.Held) != 0 {
			t.Errorf("%d events, %d held", len(plan.Events()), len(plan.Held))
		}
	})
}

func TestDiff(t *testing.T) {
	t.Run("BILL-20 10,000 tenants, nothing to do", func(t *testing.T) {
		_, w := opened(10_000)
		e := onSQLite(t)
		store := e.ledger(t)
		appended(t, store, tenants(10_000)...)
		plan := billing.Diff(compare(w, openIn(t, store)))
		if len(plan.Held) != 0 || appended(t, store, plan.Events()...) != 0 {
			t.Errorf("%d events, %d held", len(plan.Events()), len(plan.Held))
		}
		if rows := count(t, e.open(t), "ledger"); rows != 10_000 {
			t.Errorf("%d rows", rows)
		}
	})
	t.Run("BILL-29 what waits in the outbox is known", func(t *testing.T) {
		open, w := opened(4)
		moved := w[open[0].Namespace]
		moved.CostCenter, moved.Since = "new", at(10)
		w[open[0].Namespace] = moved
		delete(w, open[1].Namespace)
		waiting := billing.Diff(compare(w, open)).Events()
		waiting = append(waiting, set(1, "A", at(3)))
		w["payments"] = cc(1, "A", at(3))
		if len(waiting) != 3 {
			t.Fatalf("%d events, want a SET, an END and the SET of payments", len(waiting))
		}
		desired := w["payments"]
		desired.Labels = map[string]string{"product": "checkout"}
		w["payments"] = desired
		if plan := billing.Diff(compare(w, billing.Overlaid(open, waiting))); len(plan.Events())+len(plan.Held) != 0 {
			t.Errorf("proposed once more: %v", plan.Events())
		}
	})
	t.Run("what nobody can place now stays as it is", func(t *testing.T) {
		open, _ := opened(1)
		c := compare(world{}, open)
		c.Unknown = map[string]bool{open[0].Namespace: true}
		if plan := billing.Diff(c); len(plan.Events())+len(plan.Held) != 0 {
			t.Errorf("%v", plan.Events())
		}
	})
	t.Run("BILL-08 a SET is never before what it closes", func(t *testing.T) {
		open, w := opened(1)
		changed := w[open[0].Namespace]
		changed.CostCenter, changed.Since = "other", at(-60)
		w[open[0].Namespace] = changed
		if got := billing.Diff(compare(w, open)).Sets[0].EffectiveAt; !got.Equal(at(0).Add(time.Microsecond)) {
			t.Errorf("set at %s", got)
		}
	})
	t.Run("an END is never before what it ends", func(t *testing.T) {
		open, _ := opened(1)
		c := compare(world{}, open)
		c.Seen = at(-60)
		if got := billing.Diff(c).Ends[0].EffectiveAt; !got.Equal(at(0).Add(time.Microsecond)) {
			t.Errorf("ended at %s", got)
		}
	})
	t.Run("BILL-21 two leaders make the same events", func(t *testing.T) {
		open, w := opened(100)
		a := billing.Diff(compare(lost{open, w, 10}.without(), open[:50]))
		b := billing.Diff(compare(lost{open, w, 10}.without(), open[:50]))
		if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(billing.Plan{})); diff != "" || len(a.Events()) != 60 {
			t.Errorf("%d events, %s", len(a.Events()), diff)
		}
	})
}

func BenchmarkDiff(b *testing.B) {
	open, w := opened(10_000)
	b.ReportAllocs()
	for b.Loop() {
		billing.Diff(compare(w, open))
	}
}
