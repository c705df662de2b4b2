package billing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/ledger"
)

func TestPeriods(t *testing.T) {
	reborn := set(1, "4711", at(30))
	reborn.TenantUID, reborn.NamespaceUID = "t2", "n2"
	for name, c := range map[string]struct {
		events []billing.Event
		want   []string
	}{
		"BILL-01 a tenant is created, changed, deleted, and created again with a new UID: three periods with the exact times": {
			[]billing.Event{set(1, "4711", at(0)), set(2, "4712", at(10)), end(2, "t1", at(20)), reborn},
			[]string{"4711 0s 10m0s", "4712 10m0s 20m0s", "4711 30m0s open"}},
		"BILL-01 without an END the period of the former tenant ends where that of the new tenant begins": {
			[]billing.Event{set(1, "4712", at(0)), reborn},
			[]string{"4712 0s 30m0s", "4711 30m0s open"}},
		"BILL-04 cost center A, then B, then A: three periods": {
			[]billing.Event{set(1, "A", at(0)), set(2, "B", at(1)), set(3, "A", at(2))},
			[]string{"A 0s 1m0s", "B 1m0s 2m0s", "A 2m0s open"}},
		"BILL-05 the event of generation 3 is appended last: the view puts its period between those of generations 2 and 4": {
			[]billing.Event{set(2, "A", at(0)), set(4, "C", at(2)), set(3, "B", at(1))},
			[]string{"A 0s 1m0s", "B 1m0s 2m0s", "C 2m0s open"}},
		"BILL-06 the view ignores a late END with the UIDs of the former tenant and namespace": {
			[]billing.Event{set(1, "4712", at(0)), reborn, end(1, "t1", at(40))},
			[]string{"4712 0s 30m0s", "4711 30m0s open"}},
		"BILL-06 after a late END of the former tenant the END of the present tenant counts": {
			[]billing.Event{set(1, "4712", at(0)), reborn, end(1, "t1", at(40)), end(1, "t2", at(50))},
			[]string{"4712 0s 30m0s", "4711 30m0s 50m0s"}},
		"BILL-06 an END of another tenant splits no period": {
			[]billing.Event{set(1, "A", at(0)), end(1, "t0", at(1)), set(2, "A", at(2))},
			[]string{"A 0s open"}},
		"BILL-06 the view ignores an END without a SET before it": {
			[]billing.Event{end(1, "t1", at(1))}, nil},
		"BILL-06 the view ignores a second END": {
			[]billing.Event{set(1, "A", at(0)), end(1, "t1", at(1)), end(1, "t1", at(2))},
			[]string{"A 0s 1m0s"}},
		"BILL-07 of two generations with the same time the view has the later one alone: no period has length zero": {
			[]billing.Event{set(3, "B", at(1)), set(2, "A", at(1))},
			[]string{"B 1m0s open"}},
		"repeats of what is billed vanish": {
			[]billing.Event{set(1, "A", at(0)), set(2, "A", at(1)), set(3, "A", at(2)), set(4, "B", at(3))},
			[]string{"A 0s 3m0s", "B 3m0s open"}},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, e engine) {
				store := e.ledger(t)
				for _, event := range c.events {
					appended(t, store, event)
				}
				if diff := cmp.Diff(c.want, bounds(t, store, "payments")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAppend(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-03 an event that is appended three times, or by six writers at once, is one row", func(t *testing.T) {
			store := e.ledger(t)
			const n = 120
			events := make([]billing.Event, n)
			for i := range events {
				events[i] = set(int64(i+1), fmt.Sprint(i), at(float64(i)))
			}
			if a, b := appended(t, store, events[0], events[0]), appended(t, store, events[0]); a != 1 || b != 0 {
				t.Errorf("one event three times: %d and %d rows, want 1 and 0", a, b)
			}
			var writers errgroup.Group
			for range 6 {
				writer := e.store(t, e.open(t))
				writers.Go(func() error {
					for i := range events {
						if _, err := writer.Append(t.Context(), events[i:min(i+20, n)]); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := writers.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := count(t, e.open(t), "ledger"); got != n {
				t.Errorf("%d rows, want %d", got, n)
			}
			if got := len(bounds(t, store, "payments")); got != n {
				t.Errorf("%d periods, want %d", got, n)
			}
		})
	})
}

func TestDoubledRows(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-03 a row that the table has twice is one period", func(t *testing.T) {
			// The table has no keys, as in a warehouse that doesn't enforce them, so it can have rows twice.
			db := e.open(t)
			ddl, err := e.dialect.DDL("ledger")
			if err != nil {
				t.Fatal(err)
			}
			mustExec(t, db, strings.NewReplacer(" PRIMARY KEY", "", ", WITHOUT ROWID", "").Replace(ddl[0]))
			mustExec(t, db, ddl[1])
			store := e.store(t, db)
			// The events A and B have the same time and generation: the one that was recorded first comes first. Each duplicate is ignored.
			for minute := range 2 {
				mustExec(t, db, e.words(insertOf(set(1, "A", at(0)), at(float64(10+minute)))))
				mustExec(t, db, e.words(insertOf(set(1, "B", at(0)), at(10.5))))
				mustExec(t, db, e.words(insertOf(set(2, "C", at(1)), at(float64(20+minute)))))
			}
			if diff := cmp.Diff([]string{"B 0s 1m0s", "C 1m0s open"}, bounds(t, store, "payments")); diff != "" {
				t.Error(diff)
			}
		})
	})
}

func insertOf(e billing.Event, recorded time.Time) string {
	e = e.Sealed()
	const instant = "2006-01-02T15:04:05.000000Z"
	return fmt.Sprintf("INSERT INTO ledger VALUES ('%s', '%s', '%s', '%s', '%s', '%s', %d, '%s', '%s', '%s', '{}', '%s', '%s', '%s')",
		e.ID, e.Cluster, e.Namespace, e.NamespaceUID, e.Tenant, e.TenantUID, e.Generation, e.Op, e.CostCenter, e.Owner, e.ContentHash,
		e.EffectiveAt.Format(instant), recorded.Format(instant))
}

func TestText(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-09 names and values with quotes, SQL, backslashes, Cyrillic or emoji are stored verbatim", func(t *testing.T) {
			store := e.ledger(t)
			for i, text := range []string{`'";-- DROP TABLE ledger`, `back\slash \u0000 \`, "Бухгалтерия", "😀\u2028\t\r\n", `{"a":[1]}`,
				"<&>", "$1 ? {{t}}"} {
				event := set(1, text, at(float64(i)))
				event.Namespace, event.Tenant, event.Owner = "n"+text, "t"+text, "o"+text
				event.Labels = map[string]string{text: text}
				appended(t, store, event)
				periods := history(t, store, event.Tenant)
				if len(periods) != 1 {
					t.Fatalf("%q: %d periods", text, len(periods))
				}
				want := ledger.Period{Cluster: cluster, Namespace: "n" + text, NamespaceUID: "n1", Tenant: "t" + text, TenantUID: "t1", Generation: 1,
					CostCenter: text, Owner: "o" + text, Labels: map[string]string{text: text}, ContentHash: event.Sealed().ContentHash,
					ValidFrom: at(float64(i)), EventID: event.Sealed().ID}
				if periods[0].RecordedAt.IsZero() {
					t.Errorf("%q: no recorded_at", text)
				}
				periods[0].RecordedAt = time.Time{}
				if diff := cmp.Diff(want, periods[0]); diff != "" {
					t.Errorf("%q: %s", text, diff)
				}
			}
		})
		t.Run("BILL-09 each engine stores U+FFFD instead of U+0000 and invalid bytes", func(t *testing.T) {
			store := e.ledger(t)
			event := set(1, "a\x00b\xff", at(0))
			event.Tenant = "nul\x00"
			appended(t, store, event)
			if diff := cmp.Diff([]string{"a\uFFFDb\uFFFD 0s open"}, bounds(t, store, "nul\uFFFD")); diff != "" {
				t.Error(diff)
			}
		})
	})
}

func TestBatches(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-19 10,000 tenants are appended to an empty ledger as 10,000 rows", func(t *testing.T) {
			store := e.ledger(t)
			if added := appended(t, store, tenants(10_000)...); added != 10_000 {
				t.Errorf("%d rows, want 10,000", added)
			}
			if open := len(openIn(t, store)); open != 10_000 {
				t.Errorf("%d open periods, want 10,000", open)
			}
		})
	})
}

// tenants returns the SETs of n tenants with one namespace each.
func tenants(n int) []billing.Event {
	events := make([]billing.Event, n)
	for i := range events {
		events[i] = set(1, "4711", at(0))
		name := fmt.Sprintf("tenant-%05d", i)
		events[i].Namespace, events[i].Tenant, events[i].TenantUID, events[i].NamespaceUID = name, name, "t-"+name, "n-"+name
	}
	return events
}

func TestReading(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		store := e.ledger(t)
		elsewhere := set(1, "foreign", at(0))
		elsewhere.Cluster = "other"
		appended(t, store, set(1, "A", at(0)), set(2, `B,"x"`, at(1.0/60/1000)), elsewhere)

		t.Run("open periods are those of the cluster", func(t *testing.T) {
			want := []billing.Open{{Namespace: "payments", NamespaceUID: "n1", Tenant: "payments", TenantUID: "t1", Generation: 2,
				CostCenter: `B,"x"`, Owner: "ann@example.com", ContentHash: set(2, `B,"x"`, at(0)).Sealed().ContentHash,
				ValidFrom: nine.Add(time.Millisecond)}}
			if diff := cmp.Diff(want, openIn(t, store)); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("the latest events", func(t *testing.T) {
			appended(t, store, end(2, "t1", at(5)), end(2, "t1", at(7)), end(2, "t0", at(9)))
			got, err := store.Latest(t.Context(), []string{"payments", "nobody"})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]time.Time{"payments": at(9)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	})
}
