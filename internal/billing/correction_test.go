package billing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
)

func TestCorrect(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		right := "R"
		t.Run("BILL-31 a correction is appended, with its author and reason, and ends where it says", func(t *testing.T) {
			store := e.ledger(t)
			appended(t, store, set(1, "A", at(0)), set(2, "B", at(10)))
			before := count(t, e.open(t), "ledger")
			c := billing.Correction{Tenant: "payments", From: at(5), Until: at(20), CostCenter: &right, Author: "fin@example.com", Reason: "INV-7"}
			events, err := store.Correct(t.Context(), c)
			if err != nil || len(events) != 3 {
				t.Fatalf("%d events, error %v", len(events), err)
			}
			if diff := cmp.Diff([]string{"A 0s 5m0s", "R 5m0s 10m0s", "R 10m0s 20m0s", "B 20m0s open"}, bounds(t, store, "payments")); diff != "" {
				t.Error(diff)
			}
			if got := count(t, e.open(t), "ledger"); got != before+3 {
				t.Errorf("%d rows, want the old ones and 3", got)
			}
			reasons, err := store.Reasons(t.Context(), "payments")
			if err != nil || len(reasons) != 3 || reasons[0].Author != "fin@example.com" || reasons[0].Reason != "INV-7" ||
				reasons[0].RecordedAt.IsZero() {
				t.Errorf("reasons %v, error %v", reasons, err)
			}
		})
		t.Run("BILL-31 what says too little, or changes nothing, is refused", func(t *testing.T) {
			store := e.ledger(t)
			for _, c := range []billing.Correction{
				{Tenant: "payments", From: at(0), Until: at(1), CostCenter: &right, Reason: "x"},
				{Tenant: "payments", From: at(0), Until: at(1), CostCenter: &right, Author: "x"},
				{Tenant: "payments", From: at(0), Until: at(1), Author: "x", Reason: "x"},
				{Tenant: "payments", From: at(1), Until: at(1), CostCenter: &right, Author: "x", Reason: "x"},
				{Tenant: "nobody", From: at(0), Until: at(1), CostCenter: &right, Author: "x", Reason: "x"},
			} {
				if events, err := store.Correct(t.Context(), c); err == nil {
					t.Errorf("%+v: %d events and no error", c, len(events))
				}
			}
		})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-32 who held what at an instant", func(t *testing.T) {
			store := e.ledger(t)
			appended(t, store, set(1, "A", at(0)), set(2, "B", at(10)), end(2, "t1", at(20)))
			for minute, want := range map[float64]string{-1: "", 0: "A", 9: "A", 10: "B", 20: ""} {
				periods, err := store.Holders(t.Context(), at(minute))
				got := ""
				if len(periods) == 1 {
					got = periods[0].CostCenter
				}
				if err != nil || got != want {
					t.Errorf("after %v minutes: %q, error %v, want %q", minute, got, err, want)
				}
			}
		})
	})
}

func TestRuns(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-33 the watermark tells an idle ledger from a dead exporter", func(t *testing.T) {
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
	t.Run("BILL-34 PostgreSQL reads the rows of one namespace by the index", func(t *testing.T) {
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
