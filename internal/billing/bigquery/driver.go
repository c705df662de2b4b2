// Package bigquery is a driver of database/sql for BigQuery, over Google's client. It implements only the features that
// the billing ledger needs.
//
// Each statement is a job whose ID the driver chooses. When an answer is lost, the driver sends the same job again, and
// BigQuery runs it once because it knows the ID. The driver polls the job's status, and reads its rows only when the
// job is done. The client's own Job.Wait and Job.Read would poll a job that failed with a rate-limit error until the
// context ends (https://github.com/googleapis/google-cloud-go/pull/20070). The driver has no transactions and no
// prepared statements.
//
// All statements share one client, which is made at the first statement, and made anew after the token was refused:
// credentials may come later, or change. A job has a location, because BigQuery finds no job outside the US and EU
// without one. jobs.query would save one request, but Google's client gives each call a new requestId, so a lost answer
// could not be asked for again. "Could not serialize access" and "Too many DML statements" are temporary errors.
package bigquery

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"cloud.google.com/go/bigquery"
)

// Options determine where the jobs run, and limit the time and the bytes of each job.
type Options struct {
	// Project runs the jobs and pays for them. Dataset is the default for table names that state none. Location is the
	// dataset's location.
	Project, Dataset, Location string
	// CredentialsFile is the path of a file with a key or the configuration of a federated identity. Empty means the
	// environment's default credentials, such as GKE's workload identity.
	CredentialsFile string
	// Endpoint replaces the API's public address; empty means the public address.
	Endpoint string
	// StatementTimeout limits a statement, both its job at BigQuery and the driver's waiting.
	StatementTimeout time.Duration
	// MaximumBytesBilled is how many bytes a statement may read at most. BigQuery refuses a larger statement before
	// that costs anything.
	MaximumBytesBilled int64
	// ReadOnly refuses each statement that is no query. A dry run asks BigQuery what it is, before it runs.
	ReadOnly bool
}

// Open returns a database for these options. It reads no credentials and doesn't connect yet, so that the credentials
// may be mounted later.
func Open(o Options) *sql.DB { return sql.OpenDB(&connector{options: o}) }

// connector shares one client among all connections of database/sql, because BigQuery itself has no connections.
type connector struct {
	options Options

	mu     sync.Mutex // guards client
	client *bigquery.Client
}

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) { return &conn{c}, nil }

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return nameless{} }

// nameless is a driver that opens nothing by a data source name, because no string could hold all options. Callers use
// Open.
type nameless struct{}

func (nameless) Open(string) (driver.Conn, error) {
	return nil, errors.New("BigQuery is opened by its options, not by the name of a data source")
}

// ensureClient returns the client, and makes it if there is none. After a failure, such as a missing file, the next
// call tries again.
func (c *connector) ensureClient(ctx context.Context) (*bigquery.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	options, err := c.options.buildOptions()
	if err != nil {
		return nil, err
	}
	client, err := bigquery.NewClient(context.WithoutCancel(ctx), c.options.Project, options...)
	if err != nil {
		return nil, &Error{reason: reasonCredentials, err: err}
	}
	c.client = client
	return client, nil
}

// dropClient drops the client, so that the next statement reads the credentials again.
func (c *connector) dropClient(client *bigquery.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.client = nil
	}
}

// conn is a connection for database/sql; all share the connector's one client.
type conn struct{ *connector }

var (
	_ driver.ExecerContext  = (*conn)(nil)
	_ driver.QueryerContext = (*conn)(nil)
	_ driver.ConnBeginTx    = (*conn)(nil)
)

// Close implements driver.Conn.
func (c *conn) Close() error { return nil }

// Prepare implements driver.Conn. It always fails, because BigQuery prepares no statements. Exec and Query of
// database/sql don't call it, because conn has ExecContext and QueryContext. Only an explicit Prepare does, and gets
// this error.
func (c *conn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("BigQuery prepares no statements: use ExecContext or QueryContext")
}

// errTransactions refuses a transaction: BigQuery has transactions only in sessions, and the ledger needs none.
var errTransactions = errors.New("this driver of BigQuery has no transactions")

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return nil, errTransactions }

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, errTransactions
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.StatementTimeout)
	defer cancel()
	job, err := c.runStatement(ctx, text, args)
	if err != nil {
		return nil, err
	}
	if s, ok := job.LastStatus().Statistics.Details.(*bigquery.QueryStatistics); ok {
		return driver.RowsAffected(s.NumDMLAffectedRows), nil
	}
	return driver.RowsAffected(0), nil
}

// QueryContext implements driver.QueryerContext. StatementTimeout includes the reading of the rows.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.StatementTimeout)
	job, err := c.runStatement(ctx, text, args)
	if err != nil {
		cancel()
		return nil, err
	}
	found, err := job.Read(ctx)
	if err != nil {
		cancel()
		return nil, describeError(err)
	}
	return &rows{found: found, cancel: cancel}, nil
}
