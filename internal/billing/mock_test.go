package billing_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/warren-tenancy/warren/internal/billing"
)

// array matches a parameter that is a JSON array of this many events, in at most this many bytes.
type array struct{ rows, bytes int }

func (a array) Match(value driver.Value) bool {
	text, ok := value.(string)
	var events []map[string]any
	return ok && len(text) <= a.bytes && json.Unmarshal([]byte(text), &events) == nil && len(events) == a.rows
}

func mock(t *testing.T) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
	return db, mock
}

const postgresInsert = `INSERT INTO ledger (event_id, cluster, namespace, namespace_uid, tenant, tenant_uid, generation, op,
  cost_center, owner, labels, content_hash, effective_at, recorded_at)
SELECT r.event_id, r.cluster, r.namespace, r.namespace_uid, r.tenant, r.tenant_uid, r.generation, r.op,
  r.cost_center, r.owner, r.labels, r.content_hash, r.effective_at, clock_timestamp()
FROM jsonb_to_recordset($1::jsonb) AS r(event_id text, cluster text, namespace text, namespace_uid text, tenant text, tenant_uid text,
  generation bigint, op text, cost_center text, owner text, labels jsonb, content_hash text, effective_at timestamptz)
ON CONFLICT (event_id) DO NOTHING`

func mocked(t *testing.T, db *sql.DB, change func(*billing.Options)) *billing.Store {
	t.Helper()
	o := options()
	change(&o)
	store, err := billing.NewStore(db, billing.Postgres, o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestStatements(t *testing.T) {
	t.Run("BILL-19 the first export of 10,000 tenants is 20 statements", func(t *testing.T) {
		db, mock := mock(t)
		for range 20 {
			mock.ExpectExec(postgresInsert).WithArgs(array{500, 1 << 20}).WillReturnResult(sqlmock.NewResult(0, 500))
		}
		added, err := mocked(t, db, func(*billing.Options) {}).Append(t.Context(), tenants(10_000))
		if err != nil || added != 10_000 {
			t.Errorf("%d rows, error %v", added, err)
		}
	})
	t.Run("bytes bound a batch too, but for a row that is larger", func(t *testing.T) {
		db, mock := mock(t)
		events := tenants(5)
		events[4].Owner = strings.Repeat("x", 5000)
		mock.ExpectExec(postgresInsert).WithArgs(array{3, 1500}).WillReturnResult(sqlmock.NewResult(0, 3))
		mock.ExpectExec(postgresInsert).WithArgs(array{1, 1500}).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectExec(postgresInsert).WithArgs(array{1, 6000}).WillReturnResult(sqlmock.NewResult(0, 1))
		if _, err := mocked(t, db, func(o *billing.Options) { o.MaxBytes = 1500 }).Append(t.Context(), events); err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing is no statement", func(t *testing.T) {
		db, _ := mock(t)
		if _, err := mocked(t, db, func(*billing.Options) {}).Append(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// sqlState is an error with a SQLSTATE, as pgx returns one.
type sqlState string

func (s sqlState) Error() string    { return "SQLSTATE " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

func TestErrorsSayWhatWasDone(t *testing.T) {
	broken := errors.New("broken pipe")
	t.Run("append: the first batch is counted", func(t *testing.T) {
		db, mock := mock(t)
		mock.ExpectExec(postgresInsert).WithArgs(array{2, 9999}).WillReturnResult(sqlmock.NewResult(0, 2))
		mock.ExpectExec(postgresInsert).WithArgs(array{1, 9999}).WillReturnError(broken)
		added, err := mocked(t, db, func(o *billing.Options) { o.MaxRows = 2 }).Append(t.Context(), tenants(3))
		if added != 2 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "appending 1 events to ledger") {
			t.Errorf("%d rows, error %v", added, err)
		}
	})
	t.Run("a driver that can't count", func(t *testing.T) {
		db, mock := mock(t)
		mock.ExpectExec(postgresInsert).WithArgs(array{1, 9999}).WillReturnResult(sqlmock.NewErrorResult(broken))
		if _, err := mocked(t, db, func(*billing.Options) {}).Append(t.Context(), tenants(1)); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a connection lost among the rows yields no open period, so that a comparison ends nothing", func(t *testing.T) {
		db, mock := mock(t)
		rows := sqlmock.NewRows([]string{"namespace", "namespace_uid", "tenant", "tenant_uid", "generation", "cost_center", "owner",
			"content_hash", "valid_from"}).
			AddRow("a", "", "", "", 1, "", "", "", nine).AddRow("b", "", "", "", 1, "", "", "", nine).RowError(1, broken)
		mock.ExpectQuery("SELECT namespace, namespace_uid, tenant, tenant_uid, generation, cost_center, owner, content_hash, valid_from\n" +
			"FROM ledger_periods WHERE cluster = $1 AND valid_to IS NULL").WithArgs(cluster).WillReturnRows(rows)
		got, err := mocked(t, db, func(*billing.Options) {}).OpenPeriods(t.Context())
		if len(got) > 0 || err == nil || err.Error() != "reading the open periods of ledger: broken pipe" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestTrouble(t *testing.T) {
	store := mocked(t, nil, func(*billing.Options) {})
	for state, want := range map[string]billing.Trouble{
		"08006": billing.Unavailable, "53300": billing.Unavailable, "57P01": billing.Unavailable, "40001": billing.Unavailable,
		"25006": billing.Unavailable, "": billing.Unavailable,
		"28P01": billing.Denied, "42501": billing.Denied, "3D000": billing.Denied,
		"42P01": billing.Mismatch, "42703": billing.Mismatch, "3F000": billing.Mismatch, "23502": billing.Mismatch,
		"22P05": billing.InvalidData, "23514": billing.InvalidData, "54000": billing.InvalidData,
	} {
		if got := store.Trouble(fmt.Errorf("appending: %w", sqlState(state))); got != want {
			t.Errorf("SQLSTATE %s is %s, want %s", state, got, want)
		}
	}
	if got := store.Trouble(errors.New("connection refused")); got != billing.Unavailable {
		t.Errorf("an unknown error is %s", got)
	}
}

// The errors that the engines themselves return.
func TestTroubleOfEngines(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		db := e.open(t)
		store := e.store(t, db)
		_, err := store.Append(t.Context(), tenants(1))
		if got := store.Trouble(err); got != billing.Mismatch {
			t.Errorf("without a table: %s (%v)", got, err)
		}
		if err := store.Schema().Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.poison(t, db)
		_, err = store.Append(t.Context(), []billing.Event{set(1, "poison", nine)})
		if got := store.Trouble(err); got != billing.InvalidData {
			t.Errorf("a row that is refused: %s (%v)", got, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = store.Append(t.Context(), tenants(1))
		if got := store.Trouble(err); got != billing.Unavailable {
			t.Errorf("a closed connection: %s (%v)", got, err)
		}
	})
}
