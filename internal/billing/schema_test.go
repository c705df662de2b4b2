package billing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/warren-tenancy/warren/internal/billing"
)

// problems returns the problems of err, which must be a SchemaError.
func problems(t *testing.T, store *billing.Store, err error) []string {
	t.Helper()
	var schema *billing.SchemaError
	if !errors.As(err, &schema) {
		t.Fatalf("error %v, want a SchemaError", err)
	}
	if got := store.Trouble(err); got != billing.Mismatch {
		t.Errorf("trouble %s, want %s", got, billing.Mismatch)
	}
	return schema.Problems
}

func TestEnsure(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		db := e.open(t)
		store := e.store(t, db)
		reset := func() {
			mustExec(t, db, "DROP VIEW IF EXISTS ledger_periods")
			for _, table := range []string{"ledger", "ledger_runs"} {
				mustExec(t, db, "DROP TABLE IF EXISTS "+table)
			}
		}
		ddl, err := e.dialect.DDL("ledger")
		if err != nil {
			t.Fatal(err)
		}

		t.Run("BILL-17 with schema verify a missing table or view is an error, and none is created", func(t *testing.T) {
			got := problems(t, store, store.Schema().Verify(t.Context()))
			if diff := cmp.Diff([]string{"the table is missing, or this account may not see it"}, got); diff != "" {
				t.Error(diff)
			}
			mustExec(t, db, ddl[0])
			if got := problems(t, store, store.Schema().Verify(t.Context())); len(got) != 1 {
				t.Errorf("without the view: %q", got)
			}
			for _, text := range ddl[1:] {
				mustExec(t, db, text)
			}
			if err := store.Schema().Verify(t.Context()); err != nil {
				t.Error(err)
			}
			reset()
		})
		t.Run("six at once, and again", func(t *testing.T) {
			var all errgroup.Group
			for range 6 {
				store := e.store(t, e.open(t))
				all.Go(func() error { return store.Schema().Ensure(t.Context()) })
			}
			if err := all.Wait(); err != nil {
				t.Fatal(err)
			}
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Error(err)
			}
			reset()
		})
		t.Run("BILL-17 the error names each column that is missing, has another type, or is not Warren's and must be stated", func(t *testing.T) {
			mustExec(t, db,
				e.words(`CREATE TABLE ledger (event_id text, cluster text, tenant int, generation text, effective_at text, foreign_key text NOT NULL)`))
			text := strings.Join(problems(t, store, store.Schema().Ensure(t.Context())), "\n")
			for _, want := range []string{"column namespace is missing", "column namespace_uid is missing", "column tenant_uid is missing",
				"column op is missing",
				"column cost_center is missing", "column owner is missing", "column labels is missing", "column content_hash is missing",
				"column recorded_at is missing",
				e.words("column tenant is int"), e.words("column generation is text") + ", it must be ",
				"column foreign_key is not one of Warren's: it must allow NULL or have a default"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q doesn't say %q", text, want)
				}
			}
			reset()
		})
		t.Run("BILL-17 the error names a column of the table of runs that is not Warren's and must be stated", func(t *testing.T) {
			for _, table := range []string{"ledger_runs"} {
				for _, text := range ddl {
					if strings.Contains(text, table+" (") {
						text = strings.Replace(text, "(", e.words("(foreign_key text NOT NULL, "), 1)
					}
					mustExec(t, db, text)
				}
				for name, check := range map[string]func(context.Context) error{"Ensure": store.Schema().Ensure, "Verify": store.Schema().Verify} {
					got := problems(t, store, check(t.Context()))
					want := []string{"column foreign_key is not one of Warren's: it must allow NULL or have a default"}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s of %s: -want, +got:\n%s", name, table, diff)
					}
				}
				reset()
			}
		})
		t.Run("BILL-17 the error names each column that the view lacks", func(t *testing.T) {
			mustExec(t, db, ddl[0])
			mustExec(t, db, `CREATE VIEW ledger_periods AS SELECT cluster, namespace FROM ledger`)
			if got := problems(t, store, store.Schema().Ensure(t.Context())); len(got) != 12 {
				t.Errorf("%d problems, want 12: %q", len(got), got)
			}
			reset()
		})
		t.Run("BILL-41 schema manage replaces a view of an older version, and verify refuses it; "+
			"a view of a newer version stays", func(t *testing.T) {
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustExec(t, db, "DROP VIEW ledger_periods")
			mustExec(t, db, `CREATE VIEW ledger_periods AS SELECT cluster, namespace, namespace_uid, tenant, tenant_uid, generation, cost_center,
owner, labels, content_hash, effective_at AS valid_from, effective_at AS valid_to, recorded_at, event_id FROM ledger`)
			if got := problems(t, store, store.Schema().Verify(t.Context())); len(got) != 1 || !strings.Contains(got[0], "it is of version 1") {
				t.Errorf("who only verifies is told %q", got)
			}
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			appended(t, store, set(1, "A", at(0)))
			if diff := cmp.Diff([]string{"A 0s open"}, bounds(t, store, "payments")); diff != "" {
				t.Errorf("the older view still answers: %s", diff)
			}
			mustExec(t, db, "DROP VIEW ledger_periods")
			mustExec(t, db, strings.ReplaceAll(ddl[1], "billing view 2", "billing view 9"))
			if e.dialect.Name == "postgres" {
				mustExec(t, db, strings.ReplaceAll(ddl[2], "billing view 2", "billing view 9"))
			}
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Errorf("beside a newer view: %v", err)
			}
			if e.dialect.Name == "sqlite" {
				var text string
				if err := db.QueryRow("SELECT sql FROM sqlite_master WHERE name = 'ledger_periods'").Scan(&text); err != nil ||
					!strings.Contains(text, "view 9") {
					t.Errorf("the newer view was replaced (error %v)", err)
				}
			}
			reset()
		})
		t.Run("BILL-18 the exporter writes to a table with other columns that allow NULL or have a default", func(t *testing.T) {
			mustExec(t, db, ddl[0])
			mustExec(t, db, e.words(`ALTER TABLE ledger ADD COLUMN note text`))
			if e.dialect.Name != "bigquery" { // BigQuery can't add a column that is NOT NULL
				mustExec(t, db, `ALTER TABLE ledger ADD COLUMN reviewed text NOT NULL DEFAULT 'no'`)
			}
			if err := store.Schema().Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			if appended(t, store, set(1, "A", at(0))) != 1 {
				t.Error("nothing was written")
			}
			if diff := cmp.Diff([]string{"A 0s open"}, bounds(t, store, "payments")); diff != "" {
				t.Error(diff)
			}
			reset()
		})
	})
}

func TestTableNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	for name, c := range map[string]struct {
		dialect billing.Dialect
		table   string
		want    string
	}{
		"plain":             {billing.Postgres, "tenant_billing", ""},
		"longest":           {billing.Postgres, long[:55], ""},
		"its view's is cut": {billing.Postgres, long[:56], "at most 55 characters"},
		"SQLite cuts none":  {billing.SQLite, long, ""},
		"injection":         {billing.SQLite, "t; DROP TABLE t", "letters, digits and _"},
		"none":              {billing.SQLite, "", "letters, digits and _"},
		"too long":          {billing.SQLite, long + "x", "letters, digits and _"},
		"digit":             {billing.SQLite, "1t", "letters, digits and _"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Table = c.table
			_, err := billing.NewStore(nil, c.dialect, o)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
