package billing_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/ledger"
)

// rowsOf returns all rows of a ledger, as ledger.Periods reads them, with recorded_at.
func rowsOf(t *testing.T, store *billing.Store) []ledger.Period {
	t.Helper()
	all, err := ledger.Periods(t.Context(), store.DB(), "ledger", "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCopyFrom(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		source := e.ledger(t)
		var events []billing.Event
		for i := range 1201 {
			event := set(int64(i), fmt.Sprint("'4711\" ü", i), at(float64(i)))
			event.Namespace = fmt.Sprint("payments-", i)
			events = append(events, event)
		}
		appended(t, source, append(events, set(1, "4711", at(0)), set(2, "4712", at(60)), end(3, "t1", at(90)))...)
		if err := source.StartRun(t.Context(), billing.Run{ID: "r", StartedAt: at(0), CompleteUntil: at(100)}); err != nil {
			t.Fatal(err)
		}
		for name, other := range map[string]func(testing.TB) engine{"sqlite": onSQLite, "bigquery": onBigQuery} {
			t.Run("BILL-91 copy brings every period, with the time at which it was recorded, from each driver to each, in batches; "+
				"a second copy adds nothing: to "+name, func(t *testing.T) {
				target := other(t).ledger(t)
				for _, want := range []billing.Copied{{Clusters: []string{cluster}, Rows: 1204, Added: 1204, Runs: 1},
					{Clusters: []string{cluster}, Rows: 1204}} {
					got, err := target.CopyFrom(t.Context(), source)
					if diff := cmp.Diff(want, got); err != nil || diff != "" {
						t.Errorf("%v\n%s", err, diff)
					}
				}
				if diff := cmp.Diff(rowsOf(t, source), rowsOf(t, target)); diff != "" {
					t.Errorf("periods of source (-) and target (+) differ:\n%s", diff)
				}
				if until, err := target.CompleteUntil(t.Context()); err != nil || !until.Equal(at(100)) {
					t.Errorf("complete until %s, %v", until, err)
				}
			})
		}
	})
}
