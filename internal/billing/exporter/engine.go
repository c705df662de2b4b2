package exporter

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
)

// OpenStore opens the ledger of a configuration. It connects to nothing yet. Close the database when it is no longer needed.
func OpenStore(c *config.Billing) (*billing.Store, *sql.DB, error) {
	db, dialect, err := openEngine(c)
	if err != nil {
		return nil, nil, err
	}
	store, err := billing.NewStore(db, dialect, billing.Options{Table: c.Table, Cluster: clusterID(c), MaxRows: c.Batch.MaxRows,
		MaxBytes: int(c.Batch.MaxBytes.Value())})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, db, nil
}

// Dialect is that of a configured driver.
func Dialect(c *config.Billing) (billing.Dialect, error) {
	switch c.Driver {
	case config.DriverSQLite:
		return billing.SQLite, nil
	case config.DriverPostgres:
		return billing.Postgres, nil
	case config.DriverBigQuery:
		return billing.BigQuery(c.BigQuery.Project, c.BigQuery.Dataset), nil
	}
	return billing.Dialect{}, fmt.Errorf("billing.driver %s: this build has no such driver; choose sqlite, postgres or bigquery", c.Driver)
}

func openEngine(c *config.Billing) (*sql.DB, billing.Dialect, error) {
	dialect, err := Dialect(c)
	if err != nil {
		return nil, dialect, err
	}
	var db *sql.DB
	switch c.Driver {
	case config.DriverSQLite:
		db, err = billing.OpenSQLite(c.SQLite.Path)
	case config.DriverPostgres:
		read := func() (string, error) { return readDSN(c.Postgres.DSNFile) }
		if _, err := read(); err != nil { // at the start it is told at once
			return nil, dialect, err
		}
		db = billing.OpenPostgresBy(read)
	case config.DriverBigQuery:
		if OpenBigQuery == nil {
			return nil, dialect, fmt.Errorf("billing.driver bigquery: %s has the driver, not this program", bigqueryProgram)
		}
		db = OpenBigQuery(&c.BigQuery)
	}
	if err != nil {
		return nil, dialect, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1)
	db.SetConnMaxLifetime(5 * time.Minute) // a changed file with the data source name is heeded then
	return db, dialect, nil
}

func readDSN(path string) (string, error) {
	dsn, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("billing.postgres.dsnFile: %w; mount the Secret that holds it", err)
	}
	return strings.TrimSpace(string(dsn)), nil
}

// clusterID tells this cluster's rows from others'. A file of SQLite has those of one cluster alone, which needs no name.
func clusterID(c *config.Billing) string {
	if c.ClusterID == "" {
		return "local"
	}
	return c.ClusterID
}

// outboxPath is the file of the outbox: with sqlite the ledger's own, so that there is one file to keep.
func outboxPath(c *config.Billing) string {
	if c.Driver == config.DriverSQLite {
		return c.SQLite.Path
	}
	return c.Outbox.Path
}
