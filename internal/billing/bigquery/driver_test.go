package bigquery_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/bigquery"
	"github.com/warren-tenancy/warren/test/fakebigquery"
	"github.com/warren-tenancy/warren/test/ledger"
)

// warehouse is a fake BigQuery server, the driver's options for it, and a database and a store that use it.
type warehouse struct {
	*fakebigquery.Server
	options bigquery.Options
	db      *sql.DB
	store   *billing.Store
}

func newWarehouse(t *testing.T) *warehouse {
	t.Helper()
	server, err := fakebigquery.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	w := &warehouse{Server: server, options: fakebigquery.Options(server.Endpoint(), filepath.Join(t.TempDir(), "key.json"))}
	w.options.StatementTimeout = 20 * time.Second
	w.mount(t)
	w.open(t)
	return w
}

// mount writes the file with the server's credentials.
func (w *warehouse) mount(t *testing.T) {
	t.Helper()
	if err := w.WriteCredentials(w.options.CredentialsFile); err != nil {
		t.Fatal(err)
	}
}

func (w *warehouse) open(t *testing.T) {
	t.Helper()
	w.db = bigquery.Open(w.options)
	t.Cleanup(func() { _ = w.db.Close() })
	var err error
	w.store, err = billing.NewStore(w.db, billing.BigQuery(w.options.Project, w.options.Dataset),
		billing.Options{Table: "ledger", Cluster: "acme", MaxRows: 500, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *warehouse) ensured(t *testing.T) *warehouse {
	t.Helper()
	if err := w.store.Schema().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

var event = billing.Event{Cluster: "acme", Namespace: "pay", NamespaceUID: "n1", Tenant: "pay", TenantUID: "t1",
	Generation: 1, Op: billing.Set,
	CostCenter: "4711", Owner: "ann@example.com", EffectiveAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}

// rows returns the number of rows in the ledger's table, duplicates included.
func (w *warehouse) rows(t *testing.T) (n int) {
	t.Helper()
	if err := w.db.QueryRowContext(t.Context(), "SELECT count(*) FROM ledger").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLostAnswers(t *testing.T) {
	for name, fault := range map[string]fakebigquery.Fault{
		"BILL-14 an INSERT ran and its answer is lost: the driver sends it again with its job ID; one job and one row": {
			Request: fakebigquery.Insert, Times: 1, LoseAnswer: true},
		"BILL-14 the request of an INSERT is lost: one job and one row": {
			Request: fakebigquery.Insert, Times: 1, LoseRequest: true},
		"BILL-14 three answers in a row are lost: one job and one row": {
			Request: fakebigquery.Insert, Times: 3, LoseAnswer: true},
		"BILL-14 two answers about the state of the job are lost: one job and one row": {
			Request: fakebigquery.Get, Times: 2, LoseAnswer: true},
		"BILL-14 BigQuery answers twice with status 429, without a reason: one job and one row": {
			Request: fakebigquery.Insert, Times: 2, Status: http.StatusTooManyRequests},
		"BILL-14 a proxy answers with status 502 when the driver asks for the job: one job and one row": {
			Request: fakebigquery.Get, Times: 1, Status: http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t).ensured(t)
			w.Slow = true
			before := w.Jobs()
			w.Break(fault)
			added, err := w.store.Append(t.Context(), []billing.Event{event})
			if err != nil || added != 1 {
				t.Fatalf("%d rows, error %v", added, err)
			}
			w.Heal()
			if jobs := w.Jobs() - before; jobs != 1 {
				t.Errorf("%d jobs, want one", jobs)
			}
			if rows := w.rows(t); rows != 1 {
				t.Errorf("%d rows, want one", rows)
			}
		})
	}
}

func TestFailedJobs(t *testing.T) {
	for name, c := range map[string]struct {
		reason, message string
		trouble         billing.Trouble
	}{
		"BILL-15 a job fails with jobRateLimitExceeded: the driver returns the error at once, and the next try succeeds": {
			"jobRateLimitExceeded", "Exceeded rate limits: too many DML statements outstanding against table",
			billing.Unavailable},
		"BILL-15 a job fails with rateLimitExceeded, because a table changes too often: the error comes at once, and the next try succeeds": {
			"rateLimitExceeded", "Exceeded rate limits: too many table update operations",
			billing.Unavailable},
		"BILL-15 a job fails with backendError: the error comes at once, and the next try succeeds": {
			"backendError", "An internal error occurred", billing.Unavailable},
		"BILL-15 a job fails because another writer changes the table: the error comes at once, and the next try succeeds": {
			"invalidQuery", "Could not serialize access to table acme-finops:finops.ledger due to " +
				"concurrent update", billing.Unavailable},
		"BILL-16 a job fails with quotaExceeded: the exporter treats the quota as exceeded": {"quotaExceeded",
			"Quota exceeded: Your table exceeded quota for imports or query appends per table", billing.Quota},
		"BILL-16 a job fails with accessDenied: AccessDenied": {
			"accessDenied", "Access Denied: Table acme-finops:finops.ledger", billing.Denied},
		"BILL-16 a job fails because the dataset is missing: AccessDenied": {
			"notFound", "Not found: Dataset acme-finops:finops was not found in location EU", billing.Denied},
		"BILL-17 a BigQuery job fails because the table is missing: SchemaMismatch": {
			"notFound", "Not found: Table acme-finops:finops.ledger was not found in location EU",
			billing.Mismatch},
		"BILL-17 a BigQuery job fails because a column is missing: SchemaMismatch": {
			"invalidQuery", "Unrecognized name: owner at [1:1]", billing.Mismatch},
		"BILL-23 a BigQuery job fails because a value can't be cast: InvalidData": {"invalidQuery", "Bad int64 value: x", billing.InvalidData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t).ensured(t)
			w.Slow = true
			w.Break(fakebigquery.Fault{Request: fakebigquery.Insert, JobReason: c.reason, JobMessage: c.message})
			asked := w.Requests(fakebigquery.Get)
			_, err := w.store.Append(t.Context(), []billing.Event{event})
			if got := w.store.Trouble(err); err == nil || got != c.trouble || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%s: %v; want %s", got, err, c.trouble)
			}
			if n := w.Requests(fakebigquery.Get) - asked; n != 1 {
				t.Errorf("a dead job was asked for %d times, want once", n)
			}
			w.Heal()
			if added, err := w.store.Append(t.Context(), []billing.Event{event}); err != nil || added != 1 {
				t.Errorf("once it is over: %d rows, error %v", added, err)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		fault   fakebigquery.Fault
		trouble billing.Trouble
	}{
		"BILL-16 BigQuery refuses a request with accessDenied: AccessDenied, and the driver sends it once": {
			fakebigquery.Fault{Status: http.StatusForbidden, Reason: "accessDenied",
				Message: "Access Denied: Project"}, billing.Denied},
		"BILL-16 BigQuery refuses a request with quotaExceeded: the driver sends it once": {
			fakebigquery.Fault{Status: http.StatusForbidden, Reason: "quotaExceeded", Message: "Quota exceeded"},
			billing.Quota},
		"BILL-16 BigQuery answers a request with 404, because the dataset is missing: AccessDenied, and the driver sends it once": {
			fakebigquery.Fault{Status: http.StatusNotFound, Reason: "notFound",
				Message: "Not found: Dataset acme-finops:finops"}, billing.Denied},
		"BILL-16 a proxy refuses a request: AccessDenied, and the driver sends it once": {
			fakebigquery.Fault{Status: http.StatusForbidden, Message: "no"}, billing.Denied},
		"BILL-16 BigQuery refuses the token: AccessDenied, and the driver sends the request once": {
			fakebigquery.Fault{Status: http.StatusUnauthorized, Reason: "authError", Message: "Invalid Credentials"},
			billing.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t).ensured(t)
			c.fault.Request = fakebigquery.Insert
			w.Break(c.fault)
			sent := w.Requests(fakebigquery.Insert)
			_, err := w.store.Append(t.Context(), []billing.Event{event})
			if got := w.store.Trouble(err); err == nil || got != c.trouble {
				t.Errorf("%s: %v; want %s", got, err, c.trouble)
			}
			if n := w.Requests(fakebigquery.Insert) - sent; n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
		})
	}
}

func TestOutage(t *testing.T) {
	t.Run("BILL-11 BigQuery answers 503 until the statement's time is over: WarehouseUnavailable; "+
		"a later try stores the event", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t).ensured(t)
		w.Break(fakebigquery.Fault{Request: fakebigquery.Insert, Status: http.StatusServiceUnavailable, Reason: "backendError",
			Message: "try again"})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := w.store.Append(ctx, []billing.Event{event})
		if got := w.store.Trouble(err); err == nil || got != billing.Unavailable {
			t.Errorf("%s: %v", got, err)
		}
		w.Heal()
		if added, err := w.store.Append(t.Context(), []billing.Event{event}); err != nil || added != 1 {
			t.Errorf("%d rows, error %v", added, err)
		}
	})
	t.Run("BILL-11 no server answers: WarehouseUnavailable", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		w.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := w.store.Append(ctx, []billing.Event{event})
		if got := w.store.Trouble(err); err == nil || got != billing.Unavailable {
			t.Errorf("%s: %v", got, err)
		}
	})
}

func TestCredentials(t *testing.T) {
	t.Run("BILL-24 without credentials at the start the error names their file; once the file exists, the driver works", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		if err := os.Remove(w.options.CredentialsFile); err != nil {
			t.Fatal(err)
		}
		w.denied(t, "billing.bigquery.credentialsFile: open ")
		w.mount(t)
		w.ensured(t)
	})
	t.Run("BILL-24 after BigQuery has refused credentials the driver reads their file again", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t).ensured(t)
		if err := os.Remove(w.options.CredentialsFile); err != nil {
			t.Fatal(err)
		}
		w.Break(fakebigquery.Fault{Request: fakebigquery.Insert, Times: 1, Status: http.StatusUnauthorized, Reason: "authError",
			Message: "Invalid Credentials"})
		w.denied(t, "Invalid Credentials")
		w.denied(t, "billing.bigquery.credentialsFile: open ")
		w.mount(t)
		if added, err := w.store.Append(t.Context(), []billing.Event{event}); err != nil || added != 1 {
			t.Errorf("%d rows, error %v", added, err)
		}
	})
	for name, text := range map[string]string{"is no JSON of credentials": "-----BEGIN PRIVATE KEY-----",
		`holds credentials of type "password"`: `{"type": "password"}`} {
		t.Run("BILL-24 the error says what is wrong with the file of credentials, and has nothing of its text: "+name, func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t)
			if err := os.WriteFile(w.options.CredentialsFile, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			w.denied(t, name)
		})
	}
}

// denied checks that an append fails with an error that an administrator must act on. The error must contain says, and nothing of the file
// with the credentials.
func (w *warehouse) denied(t *testing.T, says string) {
	t.Helper()
	_, err := w.store.Append(t.Context(), []billing.Event{event})
	if err == nil || w.store.Trouble(err) != billing.Denied || !strings.Contains(err.Error(), says) ||
		strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("%v is %s; want %s that says %q", err, w.store.Trouble(err), billing.Denied, says)
	}
}

func TestLimits(t *testing.T) {
	t.Run("BILL-57 a statement would read more than maximumBytesBilled: BigQuery refuses it, and the error names the key", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t).ensured(t)
		w.BytesRead = 2 << 30
		_, err := w.store.Append(t.Context(), []billing.Event{event})
		if err == nil || w.store.Trouble(err) != billing.Quota || !strings.Contains(err.Error(), "raise billing.bigquery.maximumBytesBilled") {
			t.Errorf("%v", err)
		}
	})
	t.Run("BILL-57 a job never ends: the driver gives up at statementTimeout", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t).ensured(t)
		w.options.StatementTimeout = 300 * time.Millisecond
		w.open(t)
		w.Slow = true
		w.Break(fakebigquery.Fault{Request: fakebigquery.Get, LoseRequest: true})
		_, err := w.store.Append(t.Context(), []billing.Event{event})
		if !errors.Is(err, context.DeadlineExceeded) || w.store.Trouble(err) != billing.Unavailable {
			t.Errorf("%v", err)
		}
	})
}

func TestRows(t *testing.T) {
	t.Run("BILL-57 an answer has many pages: the driver reads all rows", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t).ensured(t)
		w.PageRows, w.Slow = 3, true
		var events []billing.Event
		for i := range 10 {
			e := event
			e.EffectiveAt = e.EffectiveAt.Add(time.Duration(i) * time.Minute)
			e.CostCenter = strings.Repeat("9", i+1)
			events = append(events, e)
		}
		if _, err := w.store.Append(t.Context(), events); err != nil {
			t.Fatal(err)
		}
		periods, err := ledger.Periods(t.Context(), w.db, "ledger", "")
		if err != nil || len(periods) != 10 {
			t.Fatalf("%d periods, error %v", len(periods), err)
		}
		for i, p := range periods {
			if p.CostCenter != events[i].CostCenter || !p.ValidFrom.Equal(events[i].EffectiveAt) {
				t.Errorf("period %d: %v", i, p)
			}
		}
	})
	t.Run("values of each kind, and none", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		row := w.db.QueryRowContext(t.Context(), "SELECT ? AS a, ? AS b, ? AS c, CURRENT_TIMESTAMP() AS d, NULL AS e", "text", int64(7), 1.5)
		var text string
		var number int64
		var fraction float64
		var now time.Time
		var nothing sql.NullString
		if err := row.Scan(&text, &number, &fraction, &now, &nothing); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{"text", int64(7), 1.5, false, true}, []any{text, number, fraction, nothing.Valid,
			time.Since(now) < time.Hour}); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("there are no transactions", func(t *testing.T) {
		w := newWarehouse(t)
		if _, err := w.db.BeginTx(t.Context(), nil); err == nil {
			t.Error("a transaction began")
		}
	})
}
