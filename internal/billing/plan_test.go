package billing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
)

// cc returns the billing values of namespace payments, the root of tenant payments: this cost center, since that time.
func cc(generation int64, costCenter string, since time.Time) billing.Desired {
	return billing.Desired{NamespaceUID: "n1", Tenant: "payments", TenantUID: "t1", Generation: generation, CostCenter: costCenter,
		Owner: "ann@example.com",
		Since: since}
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

type world = map[string]billing.Desired

// compared returns the events that a comparison plans, which sees the world at that time.
func compared(t testing.TB, store *billing.Store, w world, seen, completeUntil time.Time) (events []billing.Event) {
	t.Helper()
	var pending []billing.Pending
	var beginning []string
	is := map[string]bool{}
	for _, open := range openIn(t, store) {
		state := billing.State{At: seen}
		if d, held := w[open.Namespace]; held {
			state.Desired = &d
		}
		is[open.Namespace] = true
		pending = append(pending, billing.Pending{Namespace: open.Namespace, Open: &open, States: []billing.State{state}})
	}
	for name, d := range w {
		if !is[name] {
			beginning = append(beginning, name)
			pending = append(pending, billing.Pending{Namespace: name, States: []billing.State{{Desired: &d, At: seen}}})
		}
	}
	latest, err := store.Latest(t.Context(), beginning)
	if err != nil {
		t.Fatal(err)
	}
	p := billing.Plan{Cluster: cluster, Latest: latest, CompleteUntil: completeUntil}
	for _, n := range pending {
		planned, _ := p.Events(n)
		events = append(events, planned...)
	}
	return events
}

// reconciled compares at 10 o'clock and appends. Another comparison must then find nothing.
func reconciled(t *testing.T, store *billing.Store, w world) {
	t.Helper()
	appended(t, store, compared(t, store, w, at(60), time.Time{})...)
	if again := compared(t, store, w, at(60), time.Time{}); len(again) != 0 {
		t.Errorf("the second plan is not empty: %v", again)
	}
}

func TestComparisonOnEngines(t *testing.T) {
	other := cc(1, "B", at(5))
	other.Tenant, other.TenantUID = "shop", "t2"
	reborn := cc(1, "B", at(30))
	reborn.TenantUID, reborn.NamespaceUID = "t2", "n2"
	later := reborn
	later.Since, later.Made = at(90), at(90)
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
		"BILL-01 comparisons find a tenant created, changed, deleted and created again: three periods with the recorded times, " +
			"and the deletion has the time of its comparison": {[]world{{"payments": cc(1, "A", at(0))}, {"payments": cc(2, "B", at(5))}, {},
			{"payments": later}},
			[]string{"A 0s 5m0s", "B 5m0s 1h0m0s", "B 1h30m0s open"}},
		"BILL-06 a comparison finds a tenant deleted and created again: the old period ends where the new one begins": {
			[]world{{"payments": cc(4, "A", at(0))}, {"payments": reborn}},
			[]string{"A 0s 30m0s", "B 30m0s open"}},
		"BILL-07 a later generation with the same recorded time begins 1 µs after the earlier one, and stays open": {
			[]world{{"payments": cc(1, "A", at(0))}, {"payments": cc(2, "B", at(0))}},
			[]string{"A 0s 1µs", "B 1µs open"}},
		"BILL-08 each of three generations is recorded earlier than the one before: it begins 1 µs after that one, " +
			"and the latest stays open": {[]world{{"payments": cc(1, "A", at(2))}, {"payments": cc(2, "B", at(1))}, {"payments": cc(3, "C", at(0))}},
			[]string{"A 2m0s 2m0.000001s", "B 2m0.000001s 2m0.000002s", "C 2m0.000002s open"}},
		// The comparison is an hour after nine. By the API server's clock, the tenant came back already at 9:30.
		"BILL-08 by a clock that is ahead a period ended at 10:00; a tenant recorded at 9:30 begins 1 µs after that end": {
			[]world{{"payments": cc(1, "A", at(0))}, {}, {"payments": reborn}},
			[]string{"A 0s 1h0m0s", "B 1h0m0.000001s open"}},
		"BILL-08 a period that ended by a clock that is ahead keeps its end, whatever states follow; each begins 1 µs after the one before": {
			[]world{{"payments": cc(1, "A", at(0))}, {},
				{"payments": cc(1, "A", at(30))}, {"payments": cc(2, "B", at(40))}, {}, {"payments": reborn}},
			[]string{"A 0s 1h0m0s", "A 1h0m0.000001s 1h0m0.000002s", "B 1h0m0.000002s 1h0m0.000003s", "B 1h0m0.000004s open"}},
		"BILL-08 a clock that is ahead changes no time that the API server has recorded": {[]world{{"payments": cc(1, "A", at(0))},
			{"payments": cc(2, "B", at(20))}, {"payments": cc(3, "C", at(30))}},
			[]string{"A 0s 20m0s", "B 20m0s 30m0s", "C 30m0s open"}},
		"away to another tenant and back in one second": {[]world{{"payments": cc(1, "A", at(5))}, {"payments": other},
			{"payments": cc(1, "A", at(5))}},
			[]string{"A 5m0s 1h0m0s", "A 1h0m0.000001s open"}},
		"BILL-27 a comparison finds other labels: the new period begins at the comparison, not at an older recorded time": {
			[]world{{"payments": cc(1, "A", at(5))}, {"payments": labelled}},
			[]string{"A 5m0s 1h0m0s", "A 1h0m0s open"}},
		"BILL-27 a comparison finds a namespace in another tenant: its old period ends at the comparison, " +
			"not at an older time recorded for the new tenant": {[]world{{"payments": cc(1, "A", at(5))}, {"payments": moved}},
			[]string{"A 5m0s 1h0m0s"}},
		"BILL-28 a namespace was deleted and created again in its tenant while no exporter watched: two periods, " +
			"which meet at the second creation": {[]world{{"payments": cc(1, "A", at(0))},
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
			})
		})
	}
}

// A namespace that came to its tenant unseen is billed from the comparison that sees it. If it was made after the watermark, or before
// there was any ledger, it is billed from its creation. A period that has ended never changes.
func TestNamespaceThatCameUnseen(t *testing.T) {
	other := func(made time.Time) billing.Desired {
		d := cc(1, "B", made)
		d.TenantUID, d.Made = "t2", made
		return d
	}
	for name, c := range map[string]struct {
		before        []world
		completeUntil time.Time
		now           billing.Desired
		want          []string
	}{
		"BILL-77 a namespace that is older than the end of its period with another tenant begins when the comparison sees it; " +
			"the ended period keeps its end": {[]world{{"payments": cc(1, "A", at(0))}, {}}, at(70), other(at(-600)),
			[]string{"A 0s 1h0m0s", "B 2h0m0s open"}},
		"BILL-77 in a ledger without a watermark, a namespace that had a period with another tenant begins when the comparison sees it": {
			[]world{{"payments": cc(1, "A", at(0))}, {}}, time.Time{}, other(at(-600)),
			[]string{"A 0s 1h0m0s", "B 2h0m0s open"}},
		"BILL-77 a namespace that is older than the watermark and never had a period begins when the comparison sees it": {
			nil, at(70), other(at(-600)), []string{"B 2h0m0s open"}},
		"BILL-77 a namespace created after the watermark begins at its creation": {
			nil, at(70), other(at(80)), []string{"B 1h20m0s open"}},
		"BILL-77 a namespace created before there was any ledger begins at its creation": {
			nil, time.Time{}, other(at(5)), []string{"B 5m0s open"}},
		"BILL-31 a comparison dates no event before the watermark, so it does not undo a correction": {
			[]world{{"payments": cc(1, "corrected", at(10))}}, at(70), cc(1, "B", at(10)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, e engine) {
				store := e.ledger(t)
				for _, w := range c.before {
					reconciled(t, store, w)
				}
				want := c.want
				if want == nil { // what the ledger has until its watermark stands
					want = []string{"corrected 10m0s 1h10m0s", "B 1h10m0s open"}
				}
				appended(t, store, compared(t, store, world{"payments": c.now}, at(120), c.completeUntil)...)
				if diff := cmp.Diff(want, bounds(t, store, "payments")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// After each comparison, whatever has changed, the open periods are those of the last world, and a second plan is empty.
func TestComparisonConverges(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-02 if nothing has changed since the first comparison, a second one plans no event", func(t *testing.T) {
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

func TestStates(t *testing.T) {
	watched := func(costCenter string, minute float64) billing.State {
		d := cc(1, costCenter, at(-9))
		return billing.State{Desired: &d, At: at(minute), Watched: true}
	}
	gone := func(minute float64) billing.State { return billing.State{At: at(minute), Watched: true} }
	a := billing.Open{Namespace: "payments", NamespaceUID: "n1", Tenant: "payments", TenantUID: "t1",
		ContentHash: set(1, "A", nine).Sealed().ContentHash, CostCenter: "A", ValidFrom: at(0)}
	plain := cc(1, "A", nine)
	a.ContentHash = billing.Event{Tenant: "payments", CostCenter: "A", Owner: plain.Owner}.Sealed().ContentHash
	for name, c := range map[string]struct {
		open   *billing.Open
		latest time.Time
		states []billing.State
		want   []string
	}{
		"BILL-36 each state that a watch brings is a period, which begins when it arrived": {
			&a, time.Time{}, []billing.State{watched("B", 1), watched("C", 2)},
			[]string{"SET B 1m0s", "SET C 2m0s"}},
		"BILL-29 a state that a watch brings and the ledger already has is no event": {&a, time.Time{}, []billing.State{watched("A", 1)}, nil},
		"there and back": {&a, time.Time{}, []billing.State{gone(1), watched("A", 2)}, []string{"END  1m0s", "SET A 2m0s"}},
		"BILL-08 an END whose time lies before its period ends that period 1 µs after its beginning": {
			&a, time.Time{}, []billing.State{gone(-60)}, []string{"END  1µs"}},
		"BILL-08 states that arrive when the last period ended begin 1 µs after that end, and after each other": {
			nil, at(7), []billing.State{watched("A", 7), watched("B", 7)},
			[]string{"SET A 7m0.000001s", "SET B 7m0.000002s"}},
		"an older state that another exporter has overtaken": {&a, time.Time{}, []billing.State{watched("B", -2), watched("A", -1)}, nil},
		"no tenant before, none now":                         {nil, time.Time{}, []billing.State{gone(1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := billing.Plan{Cluster: cluster, Latest: map[string]time.Time{}}
			if !c.latest.IsZero() {
				p.Latest["payments"] = c.latest
			}
			events, _ := p.Events(billing.Pending{Namespace: "payments", Open: c.open, States: c.states})
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s %s %s", e.Op, e.CostCenter, e.EffectiveAt.Sub(nine)))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("BILL-20 a comparison of 10,000 tenants without a change plans no event", func(t *testing.T) {
		e := onSQLite(t)
		store := e.ledger(t)
		appended(t, store, tenants(10_000)...)
		began := time.Now()
		if events := compared(t, store, desired(10_000, "4711"), at(60), time.Time{}); len(events) != 0 {
			t.Errorf("%d events", len(events))
		}
		t.Log("the comparison took", time.Since(began))
	})
	t.Run("BILL-21 two exporters that compare the same cluster append each event once", func(t *testing.T) {
		store := onSQLite(t).ledger(t)
		for range 2 {
			added := appended(t, store, func() []billing.Event {
				fresh := onSQLite(t).ledger(t)
				return compared(t, fresh, desired(100, "4711"), at(60), time.Time{})
			}()...)
			t.Log(added, "rows were new")
		}
		if n := count(t, store.DB(), "ledger"); n != 100 {
			t.Errorf("%d rows", n)
		}
	})
}
