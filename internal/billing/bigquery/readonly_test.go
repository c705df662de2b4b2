package bigquery_test

import (
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/fakebigquery"
)

func TestReadOnly(t *testing.T) {
	w := newWarehouse(t).ensured(t)
	if _, err := w.store.Append(t.Context(), []billing.Event{event}); err != nil {
		t.Fatal(err)
	}
	w.options.ReadOnly = true
	w.open(t)
	for _, statement := range []string{"DROP TABLE ledger", "DELETE FROM ledger WHERE true", "UPDATE ledger SET owner = '' WHERE true",
		"CREATE OR REPLACE VIEW ledger_periods AS SELECT 1 AS one", "SELECT 1; DROP TABLE ledger"} {
		t.Run("BILL-90 before a question, BigQuery says by a dry run what the statement is; one that is no query is never run: "+
			statement, func(t *testing.T) {
			jobs := w.Jobs()
			_, err := w.db.ExecContext(t.Context(), statement)
			if err == nil || !strings.Contains(err.Error(), "only SELECT changes nothing") || !w.store.IsRefusedWrite(err) {
				t.Errorf("got %v", err)
			}
			if w.Jobs() != jobs {
				t.Error("a job was run")
			}
		})
	}
	t.Run("BILL-90 before a question, BigQuery says by a dry run what the statement is; one that is no query is never run: "+
		"queries are", func(t *testing.T) {
		requests := w.Requests(fakebigquery.Insert)
		if n := w.rows(t); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
		if got := w.Requests(fakebigquery.Insert) - requests; got != 2 {
			t.Errorf("%d requests, want a dry run and a job", got)
		}
		if err := w.store.Schema().Verify(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := w.db.QueryContext(t.Context(), "SELECT x FROM nowhere"); err == nil || w.store.IsRefusedWrite(err) {
			t.Errorf("a table that doesn't exist: %v", err)
		}
	})
}
