package billing_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
)

// counted is a driver that counts its statements, and their bytes.
type counted struct {
	driver.Driver
	open       func(context.Context) (driver.Conn, error)
	statements atomic.Int64
	bytes      atomic.Int64
}

func (c *counted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.open(ctx)
	return &countedConn{conn, c}, err
}

// connectionsOf returns the function that opens the driver's connections for an engine, so that they can be counted. BigQuery's have no
// data source name, and aren't real connections: one serves all.
func connectionsOf(e engine, db *sql.DB) func(context.Context) (driver.Conn, error) {
	name := e.dsn
	switch e.dialect.Name {
	case billing.SQLite.Name:
		name = "file:" + (&url.URL{Path: e.dsn}).EscapedPath() +
			"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	case "bigquery":
		return func(ctx context.Context) (made driver.Conn, err error) {
			one, err := db.Conn(ctx)
			if err != nil {
				return nil, err
			}
			defer one.Close()
			err = one.Raw(func(conn any) error {
				made = conn.(driver.Conn)
				return nil
			})
			return made, err
		}
	}
	return func(context.Context) (driver.Conn, error) { return db.Driver().Open(name) }
}

type countedConn struct {
	driver.Conn
	by *counted
}

func (c *countedConn) count(query string, args []driver.NamedValue) {
	c.by.statements.Add(1)
	size := len(query)
	for _, arg := range args {
		if text, ok := arg.Value.(string); ok {
			size += len(text)
		}
	}
	c.by.bytes.Add(int64(size))
}

func (c *countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.count(query, args)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.count(query, args)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// benched is a ledger whose statements are counted.
type benched struct {
	store *billing.Store
	wire  *counted
}

func benchOn(b *testing.B, e engine) *benched {
	b.Helper()
	own := e.open(b)
	wire := &counted{Driver: own.Driver(), open: connectionsOf(e, own)}
	db := sql.OpenDB(&connector{wire})
	b.Cleanup(func() { _ = db.Close() })
	store := e.store(b, db)
	if err := store.Schema().Ensure(b.Context()); err != nil {
		b.Fatal(err)
	}
	return &benched{store, wire}
}

type connector struct{ *counted }

func (c *connector) Driver() driver.Driver { return c.counted.Driver }

// desired returns what the ledger should have for a cluster of n tenants with one namespace each.
func desired(n int, costCenter string) map[string]billing.Desired {
	all := make(map[string]billing.Desired, n)
	for i := range n {
		name := fmt.Sprintf("tenant-%05d", i)
		all[name] = billing.Desired{NamespaceUID: "n-" + name, Tenant: name, TenantUID: "t-" + name, Generation: 1, CostCenter: costCenter,
			Owner: "ann@example.com", Labels: map[string]string{"product": "checkout"}, Since: nine}
	}
	return all
}

// compared compares the ledger with all, writes the differences as the exporter does, and returns how many rows were new.
func (b *benched) compared(t *testing.B, all map[string]billing.Desired) int64 {
	t.Helper()
	return b.written(t, compared(t, b.store, all, time.Now(), time.Time{}))
}

func (b *benched) written(t *testing.B, events []billing.Event) int64 {
	t.Helper()
	added, _, err := b.store.Sift(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// step runs work as one part of the benchmark. It reports rows per second, statements and bytes sent to the warehouse, allocated memory,
// and the heap that is live afterwards.
func (b *benched) step(t *testing.B, most int64, want int64, work func() int64) {
	t.Helper()
	b.wire.statements.Store(0)
	b.wire.bytes.Store(0)
	var before, memory runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	rows := work()
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&memory)
	statements := b.wire.statements.Load()
	t.ReportMetric(0, "ns/op")
	t.ReportMetric(float64(rows)/took.Seconds(), "rows/s")
	t.ReportMetric(took.Seconds(), "s")
	t.ReportMetric(float64(statements), "statements")
	t.ReportMetric(float64(b.wire.bytes.Load())/(1<<10), "KiB-sent")
	t.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "MiB-heap")
	t.ReportMetric(float64(memory.TotalAlloc-before.TotalAlloc)/(1<<20), "MiB-allocated")
	if rows != want || statements > most {
		t.Errorf("%d rows by %d statements, wanted %d by at most %d", rows, statements, want, most)
	}
}

// BenchmarkLedger is part of `make bench-billing`: a backfill, a comparison that finds no difference, and changes as watches report them.
// The number of statements has a limit, because each costs money in a warehouse. The other numbers are only for comparison.
func BenchmarkLedger(b *testing.B) {
	const tenants = 10_000
	for name, on := range map[string]func(testing.TB) engine{"sqlite": onSQLite, "postgres": onPostgres, "bigquery": onBigQuery} {
		b.Run(name, func(b *testing.B) {
			all := benchOn(b, on(b))
			b.Run("backfill", func(b *testing.B) {
				all.step(b, 22, tenants, func() int64 { return all.compared(b, desired(tenants, "4711")) })
			})
			b.Run("nothing", func(b *testing.B) {
				all.step(b, 1, 0, func() int64 { return all.compared(b, desired(tenants, "4711")) })
			})
			b.Run("changes", func(b *testing.B) {
				all.step(b, 2, 1000, func() int64 { return all.written(b, events(1000)) })
			})
		})
	}
}

// events returns changes of the cost centers of n tenants.
func events(n int) []billing.Event {
	changes := tenants(n)
	for i := range changes {
		changes[i].Generation, changes[i].CostCenter, changes[i].EffectiveAt = 2, "4712", at(60)
	}
	return changes
}
