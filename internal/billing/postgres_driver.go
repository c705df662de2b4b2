package billing

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// OpenPostgres returns a database for a URL or a list of key=value, as libpq takes them, and an error for a malformed
// one. It doesn't connect yet.
func OpenPostgres(dsn string) (*sql.DB, error) {
	if _, err := parsePostgres(dsn); err != nil {
		return nil, err
	}
	return OpenPostgresBy(func() (string, error) { return dsn, nil }), nil
}

// OpenPostgresBy returns a database that asks for the data source name before each connection, so that a changed
// password needs no restart.
func OpenPostgresBy(dsn func() (string, error)) *sql.DB { return sql.OpenDB(postgresConnector{dsn}) }

func parsePostgres(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the data source name of PostgreSQL: %w", err) // pgx leaves the password out
	}
	return config, nil
}

type postgresConnector struct{ dsn func() (string, error) }

// Connect implements driver.Connector.
func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	dsn, err := c.dsn()
	if err != nil {
		return nil, err
	}
	config, err := parsePostgres(dsn)
	if err != nil {
		return nil, err
	}
	return stdlib.GetConnector(*config).Connect(ctx)
}

// Driver implements driver.Connector.
func (c postgresConnector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }
