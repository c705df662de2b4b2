package exporter

import (
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/bigquery"
	"github.com/warren-tenancy/warren/test/fakebigquery"
	"github.com/warren-tenancy/warren/test/postgres"
)

// opener returns a new, empty ledger of one engine, and its database.
type opener func(t *testing.T) (*billing.Store, *sql.DB)

// engines returns SQLite, the stand-in of BigQuery, and PostgreSQL. Where that is not installed, its opener skips the test.
func engines(t *testing.T) map[string]opener {
	t.Helper()
	all := map[string]opener{"sqlite": func(t *testing.T) (*billing.Store, *sql.DB) {
		db, err := billing.OpenSQLite(filepath.Join(t.TempDir(), "ledger.db"))
		return opened(t, billing.SQLite, db, err)
	}, "bigquery": openFakeBigQuery}
	var start sync.Once
	var server *postgres.Server
	var failed error
	t.Cleanup(func() {
		if server != nil {
			server.Stop()
		}
	})
	all["postgres"] = func(t *testing.T) (*billing.Store, *sql.DB) {
		postgres.Require(t)
		if start.Do(func() { server, failed = postgres.Start() }); failed != nil {
			t.Fatal(failed)
		}
		db, err := billing.OpenPostgres(server.DSN)
		store, db := opened(t, billing.Postgres, db, err)
		for _, object := range []string{"VIEW ledger_periods", "TABLE ledger", "TABLE ledger_runs"} {
			if _, err := db.ExecContext(t.Context(), "DROP "+strings.Replace(object, " ", " IF EXISTS ", 1)); err != nil {
				t.Fatal(err)
			}
		}
		return store, db
	}
	return all
}

func openFakeBigQuery(t *testing.T) (*billing.Store, *sql.DB) {
	server, err := fakebigquery.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	file := filepath.Join(t.TempDir(), "key.json")
	if err := server.WriteCredentials(file); err != nil {
		t.Fatal(err)
	}
	db := bigquery.Open(fakebigquery.Options(server.Endpoint(), file))
	return opened(t, billing.BigQuery(fakebigquery.Project, fakebigquery.Dataset), db, nil)
}

func opened(t *testing.T, dialect billing.Dialect, db *sql.DB, err error) (*billing.Store, *sql.DB) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := billing.NewStore(db, dialect, billing.Options{Table: "ledger", Cluster: "c", MaxRows: 500, MaxBytes: 1 << 20, Manage: true})
	if err != nil {
		t.Fatal(err)
	}
	return store, db
}
