package billing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"golang.org/x/sync/errgroup"

	"github.com/warren-tenancy/warren/internal/billing"
)

func numbered(from, to int) (events []billing.Event) {
	for i := from; i < to; i++ {
		events = append(events, set(int64(i), fmt.Sprint(i), at(float64(i))))
	}
	return events
}

// sift stores events on an engine, and returns the refused ones.
func sift(t *testing.T, store *billing.Store, events []billing.Event) (added int64, refused []billing.Refused) {
	t.Helper()
	added, refused, err := store.Sift(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	return added, refused
}

func TestSift(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-23 of 600 rows the ledger refuses four because of their data: "+
			"it stores the others, and names these with a reason", func(t *testing.T) {
			store := e.ledger(t)
			e.poison(t, e.open(t))
			events := tenants(600)
			for _, i := range []int{0, 1, 317, 599} {
				events[i].CostCenter = "poison"
			}
			added, refused := sift(t, store, events)
			if added != 596 || len(refused) != 4 || refused[2].Event.Tenant != events[317].Tenant || refused[2].Reason == nil {
				t.Errorf("%d added, refused %v", added, refused)
			}
			if got := count(t, e.open(t), "ledger"); got != 596 {
				t.Errorf("%d rows", got)
			}
		})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-26 the ledger refuses 480 rows of one tenant because of their data: "+
			"the rows of other tenants are stored", func(t *testing.T) {
			store := e.ledger(t)
			e.poison(t, e.open(t))
			events := slices.Concat(numbered(0, 480), tenants(20))
			for i := range 480 {
				events[i].CostCenter = "poison"
			}
			added, refused := sift(t, store, events)
			if added != 20 || len(refused) != 480 {
				t.Errorf("%d added, %d refused, want 20 and 480", added, len(refused))
			}
		})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-26 the ledger refuses 20 rows of one tenant because of their data: the end of another period of this tenant is stored",
			func(t *testing.T) {
				store := e.ledger(t)
				e.poison(t, e.open(t))
				events := numbered(0, 20)
				for i := range events {
					events[i].CostCenter = "poison"
				}
				events = append(events, end(30, "t1", at(30)))
				added, refused := sift(t, store, events)
				if added != 1 || len(refused) != 20 {
					t.Errorf("%d added, %d refused, want 1 and 20", added, len(refused))
				}
			})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-23 if the ledger refuses all 500 rows, its table is the cause: SchemaMismatch", func(t *testing.T) {
			store := e.ledger(t)
			e.poison(t, e.open(t))
			events := tenants(500)
			for i := range events {
				events[i].CostCenter = "poison"
			}
			if _, _, err := store.Sift(t.Context(), events); store.Trouble(err) != billing.Mismatch {
				t.Errorf("%s: %v", store.Trouble(err), err)
			}
		})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-21 three writers append overlapping parts of a history at once: each event is one period", func(t *testing.T) {
			store, events := e.ledger(t), numbered(0, 400)
			var leaders errgroup.Group
			for _, part := range [][]billing.Event{events[:300], events[100:], events[150:250]} {
				own := e.store(t, e.open(t))
				leaders.Go(func() error {
					_, _, err := own.Sift(t.Context(), part)
					return err
				})
			}
			if err := leaders.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := len(bounds(t, store, "payments")); got != 400 {
				t.Errorf("%d periods", got)
			}
		})
	})
}

func TestSiftStatements(t *testing.T) {
	t.Run("BILL-26 the exporter needs fewer than 60 statements to find that 500 rows are refused", func(t *testing.T) {
		db, mock := mock(t)
		tries := 0
		for range 60 {
			mock.ExpectExec(postgresInsert).WillReturnError(sqlState("22P05"))
		}
		_, refused, err := mocked(t, db, func(*billing.Options) {}).Sift(t.Context(), numbered(0, 500))
		for mock.ExpectationsWereMet() != nil && tries < 60 { // the statements that were not needed
			_, _ = db.ExecContext(t.Context(), postgresInsert)
			tries++
		}
		if err != nil || len(refused) != 500 || tries == 0 {
			t.Errorf("%d refused by %d statements, %v", len(refused), 60-tries, err)
		}
	})
	t.Run("BILL-23 the warehouse fails during the search for refused rows: stored rows count, and none is called refused", func(t *testing.T) {
		db, mock := mock(t)
		mock.ExpectExec(postgresInsert).WithArgs(array{40, 1 << 20}).WillReturnError(sqlState("22P05"))
		mock.ExpectExec(postgresInsert).WithArgs(array{20, 1 << 20}).WillReturnResult(sqlmock.NewResult(0, 20))
		mock.ExpectExec(postgresInsert).WithArgs(array{20, 1 << 20}).WillReturnError(errors.New("connection reset"))
		added, refused, err := mocked(t, db, func(*billing.Options) {}).Sift(t.Context(), numbered(0, 40))
		if err == nil || added != 20 || len(refused) != 0 {
			t.Errorf("%d added, refused %v, %v", added, refused, err)
		}
	})
}

func TestPauses(t *testing.T) {
	for trouble, want := range map[billing.Trouble]time.Duration{billing.Unavailable: 0, billing.InvalidData: 0,
		billing.Denied: 5 * time.Minute, billing.Mismatch: 5 * time.Minute, billing.Quota: 10 * time.Minute} {
		t.Run("BILL-16 the exporter pauses for 5 minutes after AccessDenied or SchemaMismatch, and for 10 minutes if a quota is exceeded: "+
			string(trouble), func(t *testing.T) {
			if got := trouble.Pause(); got != want {
				t.Errorf("%s, wanted %s", got, want)
			}
		})
	}
}
