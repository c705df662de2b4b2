package exporter

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/bigquery"
	"github.com/warren-tenancy/warren/test/fakebigquery"
	"github.com/warren-tenancy/warren/test/postgres"
)

// opener returns a new, empty ledger of one engine, and its database.
type opener func(t *testing.T) (*billing.Store, *sql.DB)

// engines returns SQLite, the stand-in of BigQuery and, if it is installed, PostgreSQL. In CI it must be installed.
func engines(t *testing.T) map[string]opener {
	t.Helper()
	all := map[string]opener{"sqlite": func(t *testing.T) (*billing.Store, *sql.DB) {
		db, err := billing.OpenSQLite(filepath.Join(t.TempDir(), "ledger.db"))
		return opened(t, billing.SQLite, db, err)
	}, "bigquery": openFakeBigQuery}
	if !postgres.Installed() {
		if os.Getenv("CI") == "true" {
			t.Fatal(postgres.Missing)
		}
		t.Log(postgres.Missing)
		return all
	}
	server, err := postgres.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	all["postgres"] = func(t *testing.T) (*billing.Store, *sql.DB) {
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
	key, err := server.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	db := bigquery.Open(bigquery.Options{Project: fakebigquery.Project, Dataset: fakebigquery.Dataset, Location: fakebigquery.Location,
		Endpoint: server.Endpoint(), CredentialsFile: file, StatementTimeout: time.Minute, MaximumBytesBilled: 1 << 30})
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
