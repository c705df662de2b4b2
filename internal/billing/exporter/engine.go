package exporter

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

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
	}
	return billing.Dialect{}, fmt.Errorf("billing.driver %s: this build has no such driver; choose sqlite or postgres", c.Driver)
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
		var dsn []byte
		if dsn, err = os.ReadFile(c.Postgres.DSNFile); err != nil {
			return nil, dialect, fmt.Errorf("billing.postgres.dsnFile: %w; mount the Secret that holds it", err)
		}
		db, err = billing.OpenPostgres(strings.TrimSpace(string(dsn)))
	}
	if err != nil {
		return nil, dialect, err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1)
	return db, dialect, nil
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
