package billing

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5/stdlib"
)

// OpenPostgresReader is OpenPostgresBy for questions alone: the server refuses each statement that would change something.
// Each statement has a transaction of its own, because a connection pooler refuses the parameter default_transaction_read_only.
func OpenPostgresReader(dsn func() (string, error)) *sql.DB {
	return sql.OpenDB(readerConnector{postgresConnector{dsn}})
}

type readerConnector struct{ postgresConnector }

// Connect implements driver.Connector.
func (c readerConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.postgresConnector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return readerConn{conn.(*stdlib.Conn)}, nil
}

type readerConn struct{ *stdlib.Conn }

// QueryContext implements driver.QueryerContext.
func (c readerConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	tx, err := c.BeginTx(ctx, driver.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	rows, err := c.Conn.QueryContext(ctx, text, args)
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return readerRows{rows, tx}, nil
}

// ExecContext implements driver.ExecerContext.
func (c readerConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	tx, err := c.BeginTx(ctx, driver.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	result, err := c.Conn.ExecContext(ctx, text, args)
	return result, errors.Join(err, tx.Rollback())
}

// readerRows ends the transaction of its query.
type readerRows struct {
	driver.Rows
	tx driver.Tx
}

// Close implements driver.Rows.
func (r readerRows) Close() error { return errors.Join(r.Rows.Close(), r.tx.Rollback()) }
