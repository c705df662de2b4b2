package billing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
)

func TestRuns(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-33 the table of runs has the watermark of each exporter, and SQL reads it", func(t *testing.T) {
			store := e.ledger(t)
			run := billing.Run{ID: "r1", Exporter: "pod", Version: "v1", StartedAt: at(0), CompleteUntil: at(0)}
			if err := store.StartRun(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			if err := store.MoveWatermark(t.Context(), "r1", at(7)); err != nil {
				t.Fatal(err)
			}
			run.CompleteUntil = at(7)
			runs, err := store.Runs(t.Context())
			if diff := cmp.Diff([]billing.Run{run}, runs); err != nil || diff != "" {
				t.Errorf("error %v, %s", err, diff)
			}
			var until time.Time
			if e.dialect.Name == "postgres" {
				if err := e.open(t).QueryRow("SELECT max(complete_until) FROM ledger_runs").Scan(&until); err != nil || !until.Equal(at(7)) {
					t.Errorf("SQL reads %s, error %v", until, err)
				}
			}
		})
	})
}

// A query about one namespace must not read the whole table.
func TestPushdown(t *testing.T) {
	t.Run("BILL-34 PostgreSQL reads the periods of one namespace by the index of its table, without a sequential scan", func(t *testing.T) {
		e := onPostgres(t)
		store := e.ledger(t)
		appended(t, store, tenants(2000)...)
		db := e.open(t)
		mustExec(t, db, "ANALYZE ledger")
		rows, err := db.QueryContext(t.Context(), "EXPLAIN SELECT * FROM ledger_periods WHERE cluster = '"+cluster+"' AND namespace = 'payments'")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var plan string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan += line + "\n"
		}
		if !strings.Contains(plan, "ledger_places") || !strings.Contains(plan, "Index Cond: ((cluster = ") ||
			!strings.Contains(plan, "(namespace = 'payments'") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("the plan doesn't read by the index:\n%s", plan)
		}
		t.Log("\n" + plan)
	})
}
