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
	"github.com/warren-tenancy/warren/internal/billing/programs"
)

// OpenStore opens the ledger of a configuration. It connects to nothing yet. Close the database when it is no longer
// needed.
func OpenStore(c *config.Billing) (*billing.Store, *sql.DB, error) { return openStore(c, false) }

// OpenReader is OpenStore for questions alone: the engine refuses each statement that would change something.
func OpenReader(c *config.Billing) (*billing.Store, *sql.DB, error) { return openStore(c, true) }

func openStore(c *config.Billing, readOnly bool) (*billing.Store, *sql.DB, error) {
	db, dialect, err := openEngine(c, readOnly)
	if err != nil {
		return nil, nil, err
	}
	store, err := billing.NewStore(db, dialect, billing.Options{Table: c.Table, Cluster: clusterID(c), MaxRows: c.Batch.MaxRows,
		MaxBytes: int(c.Batch.MaxBytes.Value()), Manage: c.Schema == config.SchemaManage})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, db, nil
}

// Dialect returns the dialect of the configured driver.
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

func openEngine(c *config.Billing, readOnly bool) (*sql.DB, billing.Dialect, error) {
	dialect, err := Dialect(c)
	if err != nil {
		return nil, dialect, err
	}
	var db *sql.DB
	switch c.Driver {
	case config.DriverSQLite:
		open := billing.OpenSQLite
		if readOnly {
			open = billing.OpenSQLiteReader
		}
		db, err = open(c.SQLite.Path)
	case config.DriverPostgres:
		read := func() (string, error) { return readDSN(c.Postgres.DSNFile) }
		if _, err := read(); err != nil { // so that a missing file fails the start
			return nil, dialect, err
		}
		open := billing.OpenPostgresBy
		if readOnly {
			open = billing.OpenPostgresReader
		}
		db = open(read)
	case config.DriverBigQuery:
		if OpenBigQuery == nil {
			return nil, dialect, fmt.Errorf("billing.driver bigquery: %s has the driver, not this program", programs.BigQuery)
		}
		db = OpenBigQuery(&c.BigQuery, readOnly)
	}
	if err != nil {
		return nil, dialect, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1)
	db.SetConnMaxLifetime(5 * time.Minute) // after this time a changed file with the data source name takes effect
	return db, dialect, nil
}

func readDSN(path string) (string, error) {
	dsn, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("billing.postgres.dsnFile: %w; mount the Secret that holds it", err)
	}
	return strings.TrimSpace(string(dsn)), nil
}

// clusterID returns the configured name of the cluster in the ledger; billing.Unnamed if there is none, which only SQLite
// allows, as its file has one cluster's rows.
func clusterID(c *config.Billing) string {
	if c.ClusterID == "" {
		return billing.Unnamed
	}
	return c.ClusterID
}
