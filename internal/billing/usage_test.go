package billing_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/warren-tenancy/warren/internal/billing"
)

// piece is what a namespace had in some minutes after an hour; without a namespace, that they were watched.
func piece(hour int, from, until int64, namespace string, cores int64) billing.Usage {
	start := nine.Add(time.Duration(hour) * time.Hour)
	return billing.Usage{Cluster: cluster, Namespace: namespace, Hour: start, CoveredFrom: start.Add(time.Duration(from) * time.Minute),
		CoveredUntil: start.Add(time.Duration(until) * time.Minute), CoveredSeconds: 60 * (until - from),
		MilliCPUSeconds: cores * 1000 * 60 * (until - from), MemoryMiBSeconds: cores * 1024 * 60 * (until - from), GPUSeconds: cores * 60 * (until - from)}
}

// hours are the rows of the view of one namespace, as "hour tenant cost-center covered-minutes core-hours GiB-hours GPU-hours".
func hours(t *testing.T, db *sql.DB, namespace string) (lines []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT hour, tenant, cost_center, covered_seconds, cpu_core_hours, memory_gib_hours, gpu_hours
FROM ledger_hours WHERE namespace = '`+namespace+`' ORDER BY hour`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var hour any // text, or a time
		var tenant, payer string
		var covered int64
		var cpu, memory, gpu float64
		if err := rows.Scan(&hour, &tenant, &payer, &covered, &cpu, &memory, &gpu); err != nil {
			t.Fatal(err)
		}
		if at, ok := hour.(time.Time); ok {
			hour = at.UTC().Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %d %.2f %.2f %.2f", fmt.Sprint(hour)[11:13], tenant, payer, covered/60, cpu, memory, gpu))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestUsage(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-60 an hour that is repeated, late, missing, partial or without any reservation", func(t *testing.T) {
			db := e.open(t)
			store := e.store(t, db)
			for range 2 { // the second finds all
				if err := errors.Join(store.Schema().Ensure(t.Context()), store.Schema().EnsureUsage(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			appended(t, store, set(1, "4711", at(0)), set(2, "4712", at(50)))
			// The payer changes in hour 0. Hour 0 whole, in two pieces; 1 whole, and nothing reserved; 2 missing; 3 half.
			rows := []billing.Usage{piece(0, 0, 40, "payments", 2), piece(0, 0, 40, "", 0), piece(0, 40, 60, "payments", 4), piece(0, 40, 60, "", 0),
				piece(1, 0, 60, "", 0), piece(3, 30, 60, "payments", 1), piece(3, 30, 60, "kube-system", 3), piece(3, 30, 60, "", 0)}
			for range 2 {
				if _, err := store.AppendUsage(t.Context(), rows); err != nil {
					t.Fatal(err)
				}
			}
			if n := count(t, db, "ledger_usage"); n != len(rows) {
				t.Errorf("%d rows, want %d", n, len(rows))
			}
			late := piece(2, 0, 60, "payments", 1)
			if added, err := store.AppendUsage(t.Context(), []billing.Usage{late}); err != nil || added != 1 {
				t.Errorf("%d, %v", added, err)
			}
			if e.dialect.Name == "bigquery" { // without keys two writers at one moment leave a row twice
				mustExec(t, db, "INSERT INTO ledger_usage SELECT * FROM ledger_usage WHERE namespace = 'kube-system'")
			}
			for namespace, want := range map[string][]string{
				"payments":    {"09 payments 4712 60 2.67 2.67 2.67", "11 payments 4712 60 1.00 1.00 1.00", "12 payments 4712 30 0.50 0.50 0.50"},
				"kube-system": {"12   30 1.50 1.50 1.50"},
				"":            {"09   60 0.00 0.00 0.00", "10   60 0.00 0.00 0.00", "12   30 0.00 0.00 0.00"},
			} {
				if diff := cmp.Diff(want, hours(t, db, namespace)); diff != "" {
					t.Errorf("%q: %s", namespace, diff)
				}
			}
		})
		t.Run("BILL-17 a table of hours with other columns", func(t *testing.T) {
			db := e.open(t)
			store, err := billing.NewStore(db, e.dialect, billing.Options{Table: "other", Cluster: cluster, MaxRows: 500, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustExec(t, db, e.words("CREATE TABLE other_usage (usage_id text, hour INTEGER)"))
			var schema *billing.SchemaError
			if err := store.Schema().EnsureUsage(t.Context()); !errors.As(err, &schema) || schema.Table != "other_usage" || len(schema.Problems) < 10 {
				t.Errorf("%v", err)
			}
		})
	})
}

func TestUsageBatches(t *testing.T) {
	t.Run("BILL-60 rows beyond what a statement may hold", func(t *testing.T) {
		e := onSQLite(t)
		db := e.open(t)
		store, err := billing.NewStore(db, e.dialect, billing.Options{Table: "ledger", Cluster: cluster, MaxRows: 3, MaxBytes: 900})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(store.Schema().Ensure(t.Context()), store.Schema().EnsureUsage(t.Context())); err != nil {
			t.Fatal(err)
		}
		var rows []billing.Usage
		for i := range 20 {
			rows = append(rows, piece(0, 0, 60, fmt.Sprint("ns-", i, strings.Repeat("x", i*10)), 1))
		}
		if added, err := store.AppendUsage(t.Context(), rows); err != nil || added != 20 || count(t, db, "ledger_usage") != 20 {
			t.Errorf("%d, %v", added, err)
		}
	})
}

func TestUsageOutbox(t *testing.T) {
	t.Run("BILL-64 more hours than the outbox may hold: whole pieces go, the oldest first", func(t *testing.T) {
		outbox, err := billing.OpenOutbox(t.Context(), tempDir(t)+"/outbox.db", 5, clocktesting.NewFakePassiveClock(nine))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = outbox.Close() })
		var all []billing.Usage
		for hour := range 3 {
			all = append(all, piece(hour, 0, 60, "payments", 1), piece(hour, 0, 60, "", 0))
		}
		slices.Reverse(all)
		givenUp, err := outbox.PutUsage(t.Context(), all, []billing.Usage{piece(3, 0, 10, "payments", 1)})
		if err != nil || givenUp != 2 {
			t.Fatalf("%d, %v", givenUp, err)
		}
		told := func() (lines []string) {
			rows, err := outbox.NextUsage(t.Context(), 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range rows {
				lines = append(lines, u.CoveredFrom.Format("15 ")+u.Namespace)
			}
			return lines
		}
		if diff := cmp.Diff([]string{"10 payments", "10 ", "11 payments", "11 "}, told()); diff != "" {
			t.Error(diff)
		}
		// The piece that went on is final for the next process, in the state that was kept last.
		if _, err := outbox.PutUsage(t.Context(), nil, []billing.Usage{piece(3, 0, 20, "payments", 1)}); err != nil {
			t.Fatal(err)
		}
		if err := outbox.FinishUsage(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := told(); len(got) != 5 || got[4] != "12 payments" {
			t.Errorf("%q", got)
		}
	})
}
