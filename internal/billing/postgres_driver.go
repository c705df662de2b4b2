package billing

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// OpenPostgres takes a URL or a list of key=value, as libpq does. It connects to nothing yet.
func OpenPostgres(dsn string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the data source name of PostgreSQL: %w", err) // pgx leaves the password out
	}
	return stdlib.OpenDB(*config), nil
}
