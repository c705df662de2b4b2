package billing_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/bigquery"
	"github.com/warren-tenancy/warren/test/fakebigquery"
	"github.com/warren-tenancy/warren/test/ledger"
)

func TestMain(m *testing.M) {
	code := m.Run()
	server.stop()
	os.Exit(code)
}

// engine is a database that one test has for itself.
type engine struct {
	dialect billing.Dialect
	// dsn is the path of a file for SQLite, the address of the API for BigQuery, and a data source name for PostgreSQL.
	dsn string
	// poison makes the engine refuse rows of cost center "poison" in table ledger.
	poison func(t *testing.T, db *sql.DB)
}

// onEngines runs the same body on each engine.
func onEngines(t *testing.T, body func(t *testing.T, e engine)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { body(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { body(t, onPostgres(t)) })
	t.Run("bigquery", func(t *testing.T) { body(t, onBigQuery(t)) })
}

// poisonedBy returns a function that runs a statement after which the engine refuses some rows.
func poisonedBy(text string) func(*testing.T, *sql.DB) {
	return func(t *testing.T, db *sql.DB) {
		t.Helper()
		mustExec(t, db, text)
	}
}

func onSQLite(t testing.TB) engine {
	return engine{dialect: billing.SQLite, dsn: filepath.Join(tempDir(t), "ledger #1?.db"),
		poison: poisonedBy(`CREATE TRIGGER poison BEFORE INSERT ON ledger WHEN NEW.cost_center = 'poison' BEGIN
SELECT RAISE(ABORT, 'not this one'); END`)}
}

// tempDir returns a folder in memory, if the machine has one: on a disk, each commit of SQLite would wait for it. After a process is
// killed, the files in memory are still there.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "warren-billing-") //nolint:usetesting // in memory
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

var schemas atomic.Int64

func onPostgres(t testing.TB) engine {
	t.Helper()
	dsn := server.start(t)
	schema := fmt.Sprintf("test_%d", schemas.Add(1))
	db := engine{dialect: billing.Postgres, dsn: dsn}.open(t)
	mustExec(t, db, "CREATE SCHEMA "+schema)
	return engine{dialect: billing.Postgres, dsn: dsn + " search_path=" + schema,
		poison: poisonedBy(`ALTER TABLE ledger ADD CHECK (cost_center <> 'poison')`)}
}

// onBigQuery is the real driver and client, with a server that answers as BigQuery does.
func onBigQuery(t testing.TB) engine {
	t.Helper()
	server, err := fakebigquery.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.WriteCredentials(keyFile(server.Endpoint())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(keyFile(server.Endpoint())) })
	return engine{dialect: billing.BigQuery(fakebigquery.Project, fakebigquery.Dataset), dsn: server.Endpoint(),
		poison: func(*testing.T, *sql.DB) { server.Refuse(`"cost_center":"poison"`) }}
}

// keyFile returns the path of the credentials of a server. The path follows from the address alone, so that a child process finds it.
func keyFile(endpoint string) string {
	return filepath.Join(os.TempDir(), "warren-key-"+strings.NewReplacer(":", "-", "/", "-").Replace(endpoint)+".json")
}

// words translates a statement for the engine. Tests write plain SQL, and BigQuery has other names for types and other quotes.
func (e engine) words(text string) string {
	if e.dialect.Name != "bigquery" {
		return text
	}
	return strings.NewReplacer(" text", " STRING", " int", " INT64", " TEXT", " STRING", " INTEGER", " INT64", "'{}'", "JSON '{}'",
		`"`, "`").Replace(text)
}

// open returns one more connection pool to the same database, as another process would have it.
func (e engine) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (e engine) connect() (*sql.DB, error) {
	switch e.dialect.Name {
	case billing.SQLite.Name:
		return billing.OpenSQLite(e.dsn)
	case billing.Postgres.Name:
		return billing.OpenPostgres(e.dsn)
	}
	return bigquery.Open(fakebigquery.Options(e.dsn, keyFile(e.dsn))), nil
}

const cluster = "acme/europe-west1/main"

func options() billing.Options {
	return billing.Options{Table: "ledger", Cluster: cluster, MaxRows: 500, MaxBytes: 1 << 20}
}

func (e engine) store(t testing.TB, db *sql.DB) *billing.Store {
	t.Helper()
	store, err := billing.NewStore(db, e.dialect, options())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// ledger returns a store whose table and view exist.
func (e engine) ledger(t testing.TB) *billing.Store {
	t.Helper()
	store := e.store(t, e.open(t))
	if err := store.Schema().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

var nine = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return nine.Add(time.Duration(minutes * float64(time.Minute))) }

// set returns a SET for namespace payments, the root of tenant payments.
func set(generation int64, costCenter string, since time.Time) billing.Event {
	return billing.Event{Cluster: cluster, Namespace: "payments", NamespaceUID: "n1", Tenant: "payments", TenantUID: "t1",
		Generation: generation, Op: billing.Set, CostCenter: costCenter, Owner: "ann@example.com",
		Labels:      map[string]string{"product": "checkout"},
		EffectiveAt: since}
}

// end returns the END for namespace payments. A tenant that was made again has a namespace that was made again: the numbers in their UIDs
// are equal.
func end(generation int64, tenantUID string, since time.Time) billing.Event {
	return billing.Event{Cluster: cluster, Namespace: "payments", NamespaceUID: "n" + tenantUID[1:], Tenant: "payments", TenantUID: tenantUID,
		Generation: generation, Op: billing.End, EffectiveAt: since}
}

func appended(t *testing.T, store *billing.Store, events ...billing.Event) int64 {
	t.Helper()
	added, err := store.Append(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func mustExec(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// history returns all periods of a tenant, in order of their beginning.
func history(t *testing.T, store *billing.Store, tenant string) []ledger.Period {
	t.Helper()
	all, err := ledger.Periods(t.Context(), store.DB(), "ledger", "")
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(p ledger.Period) bool { return p.Tenant != tenant || p.Cluster != cluster })
	slices.SortStableFunc(all, func(a, b ledger.Period) int { return a.ValidFrom.Compare(b.ValidFrom) })
	return all
}

// bounds returns a tenant's periods, each as "cost center, begin, end". Both times are counted from nine o'clock.
func bounds(t *testing.T, store *billing.Store, tenant string) (bounds []string) {
	t.Helper()
	for _, p := range history(t, store, tenant) {
		until := "open"
		if !p.ValidTo.IsZero() {
			until = p.ValidTo.Sub(nine).String()
		}
		bounds = append(bounds, fmt.Sprintf("%s %s %s", cmp.Or(p.CostCenter, "-"), p.ValidFrom.Sub(nine), until))
	}
	return bounds
}
