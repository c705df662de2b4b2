package billing_test

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/fakebigquery"
)

// childEnv is the environment variable that makes the test binary the process that TestCrash kills. Its value "FIRST-END" selects the
// changes to make.
const childEnv = "WARREN_BILLING_CHILD"

// change returns the n-th change of the child. The changes are about 20 tenants in turn.
func change(n int) billing.Event {
	event := set(int64(n), strconv.Itoa(n), at(float64(n)))
	event.Namespace = fmt.Sprint("ns-", n%20)
	event.Tenant, event.TenantUID = event.Namespace, "uid-"+event.Namespace
	return event
}

// child puts changes into the outbox, from the first on, and flushes at the same time. It prints a line for each thing that it has done.
func child() int {
	if err := work(context.Background(), os.Getenv("WARREN_BILLING_ENGINE"), os.Getenv("WARREN_BILLING_DSN"),
		os.Getenv("WARREN_BILLING_OUTBOX"),
		os.Getenv(childEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func work(ctx context.Context, name, dsn, path, span string) error {
	var first, changes int
	if _, err := fmt.Sscanf(span, "%d-%d", &first, &changes); err != nil {
		return err
	}
	e := engine{dialect: map[string]billing.Dialect{"sqlite": billing.SQLite, "postgres": billing.Postgres,
		"bigquery": billing.BigQuery(fakebigquery.Project, fakebigquery.Dataset)}[name], dsn: dsn}
	db, err := e.connect()
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := billing.NewStore(db, e.dialect, options())
	if err != nil {
		return err
	}
	outbox, err := billing.OpenOutbox(ctx, path, 1_000_000, clock.RealClock{})
	if err != nil {
		return err
	}
	defer outbox.Close()
	flusher := &billing.Flusher{Outbox: outbox, Ledger: store, Clock: clock.RealClock{}, Batch: 7}
	var both errgroup.Group
	put := make(chan struct{})
	both.Go(func() error {
		defer close(put)
		for n := first; n < changes; n++ {
			if err := outbox.Put(ctx, change(n)); err != nil {
				return err
			}
			fmt.Println("put", n)
		}
		return nil
	})
	both.Go(func() error {
		for last := false; !last; {
			select {
			case <-put:
				last = true
			default:
			}
			done, err := flusher.Flush(ctx)
			if err != nil {
				return err
			}
			if done.Sent > 0 {
				fmt.Println("sent", done.Sent)
			}
		}
		return nil
	})
	return both.Wait()
}
