package billing_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/warren-tenancy/warren/internal/billing"
)

// faulty is a ledger that counts the appends, and fails with the error that fault returns, if any.
type faulty struct {
	billing.Ledger
	tries   int
	batches []int
	fault   func([]billing.Event) error
}

func (f *faulty) Append(ctx context.Context, events []billing.Event) (int64, error) {
	f.tries++
	f.batches = append(f.batches, len(events))
	if f.fault != nil {
		if err := f.fault(events); err != nil {
			return 0, err
		}
	}
	return f.Ledger.Append(ctx, events)
}

func always(err error) func([]billing.Event) error {
	return func([]billing.Event) error { return err }
}

// refusing returns a fault by which a ledger refuses events with these cost centers as invalid data.
func refusing(costCenters ...string) func([]billing.Event) error {
	return func(events []billing.Event) error {
		for _, event := range events {
			if slices.Contains(costCenters, event.CostCenter) {
				return sqlState("22P05")
			}
		}
		return nil
	}
}

// bench is a flusher with its clock, ledger and store.
type bench struct {
	*billing.Flusher
	clock  *clocktesting.FakePassiveClock
	ledger *faulty
	store  *billing.Store
}

func newBench(t *testing.T, e engine) bench {
	t.Helper()
	b := bench{clock: clocktesting.NewFakePassiveClock(nine), store: e.ledger(t)}
	b.ledger = &faulty{Ledger: troubled{b.store}}
	b.Flusher = &billing.Flusher{Outbox: outboxAt(t, filepath.Join(tempDir(t), "outbox.db"), 100_000, b.clock), Ledger: b.ledger,
		Clock: b.clock, Batch: 500}
	return b
}

// troubled also classifies the errors of the tests, which have SQLSTATEs, whatever the engine is.
type troubled struct{ *billing.Store }

func (s troubled) Trouble(err error) billing.Trouble {
	for state, trouble := range map[sqlState]billing.Trouble{"42501": billing.Denied, "22P05": billing.InvalidData, "quota": billing.Quota} {
		if errors.Is(err, state) {
			return trouble
		}
	}
	return s.Store.Trouble(err)
}

func (b bench) flush(t *testing.T) billing.Flushed {
	t.Helper()
	done, err := b.Flush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func (b bench) fails(t *testing.T) *billing.FlushError {
	t.Helper()
	_, err := b.Flush(t.Context())
	var failed *billing.FlushError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want a FlushError", err)
	}
	return failed
}

func numbered(from, to int) (events []billing.Event) {
	for i := from; i < to; i++ {
		events = append(events, set(int64(i), fmt.Sprint(i), at(float64(i))))
	}
	return events
}

func TestFlush(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("in batches, and an empty outbox is no statement", func(t *testing.T) {
			b := newBench(t, e)
			b.flush(t)
			put(t, b.Outbox, numbered(0, 1200)...)
			done := b.flush(t)
			if diff := cmp.Diff(billing.Flushed{Sent: 1200, Added: 1200}, done); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]int{500, 500, 200}, b.ledger.batches); diff != "" {
				t.Error(diff)
			}
		})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-11 an outage of an hour, 3,000 changes", func(t *testing.T) {
			b := newBench(t, e)
			b.ledger.fault = always(errors.New("503 Service Unavailable"))
			for minute := range 60 {
				b.clock.SetTime(at(float64(minute)))
				put(t, b.Outbox, numbered(50*minute, 50*minute+50)...)
				if got := b.fails(t); got.Trouble != billing.Unavailable || !got.Until.IsZero() {
					t.Fatalf("%s until %s: %v", got.Trouble, got.Until, got)
				}
				events, since, err := b.Outbox.Waiting(t.Context())
				if err != nil || events != 50*minute+50 || !since.Equal(nine) {
					t.Fatalf("%d events since %s, error %v", events, since, err)
				}
			}
			if b.ledger.tries != 60 {
				t.Errorf("%d tries in 60 flushes", b.ledger.tries)
			}
			b.ledger.fault = nil
			if got := b.flush(t); got.Added != 3000 {
				t.Errorf("%d rows", got.Added)
			}
			if got := len(bounds(t, b.store, "payments")); got != 3000 {
				t.Errorf("%d periods", got)
			}
		})
	})
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-13 the outbox is lost in an outage", func(t *testing.T) {
			b := newBench(t, e)
			put(t, b.Outbox, set(1, "A", at(0)))
			b.flush(t)
			b.ledger.fault = always(errors.New("503"))
			put(t, b.Outbox, set(2, "B", at(1)), set(3, "C", at(2)))
			_ = b.fails(t)
			b.Outbox, b.ledger.fault = newOutbox(t, 10), nil
			plan := billing.Diff(compare(world{"payments": cc(3, "C", at(2))}, openIn(t, b.store)))
			put(t, b.Outbox, plan.Events()...)
			b.flush(t)
			periods, err := b.store.History(t.Context(), "payments")
			if err != nil || len(periods) != 2 || periods[1].CostCenter != "C" || periods[1].Generation != 3 || !periods[1].ValidFrom.Equal(at(2)) {
				t.Errorf("periods %v, error %v: want generations 1 and 3", periods, err)
			}
		})
	})
}

func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		trouble billing.Trouble
		pause   time.Duration
	}{
		"BILL-16 access": {sqlState("42501"), billing.Denied, 5 * time.Minute},
		"BILL-16 quota":  {sqlState("quota"), billing.Quota, 10 * time.Minute},
		"BILL-17 another schema": {&billing.SchemaError{Table: "ledger", Problems: []string{"column op is missing"}},
			billing.Mismatch, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, onSQLite(t))
			b.ledger.fault = always(c.err)
			put(t, b.Outbox, numbered(0, 10)...)
			for second := 0; second <= int(c.pause.Seconds())*2; second++ {
				b.clock.SetTime(nine.Add(time.Duration(second) * time.Second))
				got := b.fails(t)
				if got.Trouble != c.trouble || !errors.Is(got, c.err) {
					t.Fatalf("%s: %v", got.Trouble, got)
				}
			}
			if b.ledger.tries != 3 {
				t.Errorf("%d tries in two pauses, want 3", b.ledger.tries)
			}
			b.ledger.fault = nil
			b.clock.SetTime(nine.Add(3 * c.pause))
			if got := b.flush(t); got.Added != 10 {
				t.Errorf("%d rows", got.Added)
			}
		})
	}
}

func TestPoison(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-23 one poison row in 500", func(t *testing.T) {
			b := newBench(t, e)
			db := e.open(t)
			e.poison(t, db)
			events := tenants(500)
			events[317].CostCenter = "poison"
			put(t, b.Outbox, events...)
			done := b.flush(t)
			if done.Sent != 499 || done.Added != 499 || len(done.Parked) != 1 {
				t.Fatalf("%d sent, %d added, %d parked", done.Sent, done.Added, len(done.Parked))
			}
			if got := done.Parked[0].Event.Tenant; got != events[317].Tenant {
				t.Errorf("tenant %s is told", got)
			}
			if b.ledger.tries > 20 {
				t.Errorf("%d tries to find it", b.ledger.tries)
			}
			if got := count(t, db, "ledger"); got != 499 {
				t.Errorf("%d rows", got)
			}
			if parked, err := b.Outbox.Parked(t.Context(), 10); err != nil || len(parked) != 1 || parked[0].Reason == "" {
				t.Errorf("parked %v, error %v", parked, err)
			}
			if got := waiting(t, b.Outbox); len(got) != 0 {
				t.Errorf("%d wait", len(got))
			}
		})
	})
	t.Run("BILL-23 some, the first and the last among them", func(t *testing.T) {
		b := newBench(t, onSQLite(t))
		b.ledger.fault = refusing("0", "1", "250", "499")
		put(t, b.Outbox, numbered(0, 600)...)
		if done := b.flush(t); done.Added != 596 || len(done.Parked) != 4 {
			t.Errorf("%d added, %d parked", done.Added, len(done.Parked))
		}
	})
	t.Run("BILL-23 the warehouse fails amid the search: nothing is parked, nothing lost", func(t *testing.T) {
		b := newBench(t, onSQLite(t))
		poison := refusing("9")
		b.ledger.fault = func(events []billing.Event) error {
			if b.ledger.tries == 4 {
				return errors.New("connection reset")
			}
			return poison(events)
		}
		put(t, b.Outbox, numbered(0, 40)...)
		if got := b.fails(t); got.Trouble != billing.Unavailable {
			t.Errorf("%s", got.Trouble)
		}
		if parked, err := b.Outbox.Parked(t.Context(), 10); err != nil || len(parked) != 0 {
			t.Errorf("parked %v, error %v", parked, err)
		}
		b.flush(t)
		if got := len(bounds(t, b.store, "payments")); got != 39 {
			t.Errorf("%d periods", got)
		}
	})
	t.Run("all rows are refused: that is about the table", func(t *testing.T) {
		b := newBench(t, onSQLite(t))
		b.ledger.fault = always(sqlState("22P05"))
		put(t, b.Outbox, tenants(500)...)
		if got := b.fails(t); got.Trouble != billing.Mismatch {
			t.Errorf("%s", got.Trouble)
		}
		if b.ledger.tries > 40 {
			t.Errorf("%d tries", b.ledger.tries)
		}
		if got := len(waiting(t, b.Outbox)); got != 500 {
			t.Errorf("%d wait, want all", got)
		}
	})
	t.Run("BILL-26 all rows of one tenant are refused: the others are stored, and hardly anything is asked twice", func(t *testing.T) {
		b := newBench(t, onSQLite(t))
		b.ledger.fault = func(events []billing.Event) error {
			for _, event := range events {
				if event.Tenant == "payments" {
					return sqlState("22P05")
				}
			}
			return nil
		}
		put(t, b.Outbox, slices.Concat(numbered(0, 480), tenants(20))...)
		if done := b.flush(t); done.Added != 20 || len(done.Parked) != 480 {
			t.Errorf("%d added, %d parked, want 20 and 480", done.Added, len(done.Parked))
		}
		if b.ledger.tries > 60 {
			t.Errorf("%d tries", b.ledger.tries)
		}
		b.ledger.fault = nil
		if err := b.Outbox.Unpark(t.Context()); err != nil {
			t.Fatal(err)
		}
		if done := b.flush(t); done.Added != 480 {
			t.Errorf("%d added once the ledger takes them, want 480", done.Added)
		}
	})
	t.Run("BILL-09 U+0000 in an outbox of old is parked by PostgreSQL", func(t *testing.T) {
		b := newBench(t, onPostgres(t))
		events := numbered(0, 5)
		events[2].ID, events[2].ContentHash, events[2].Labels = "an ID of its own, so that it isn't cleaned", "x", map[string]string{"k": "\x00"}
		put(t, b.Outbox, events...)
		if done := b.flush(t); done.Added != 4 || len(done.Parked) != 1 {
			t.Errorf("%d added, %d parked", done.Added, len(done.Parked))
		}
	})
}

func TestTwoLeaders(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		t.Run("BILL-21 they overlap, and one drains its outbox later", func(t *testing.T) {
			store := e.ledger(t)
			events := numbered(0, 400)
			var leaders errgroup.Group
			for _, part := range [][]billing.Event{events[:300], events[100:], events[150:250]} {
				outbox := newOutbox(t, 1000)
				put(t, outbox, part...)
				flusher := &billing.Flusher{Outbox: outbox, Ledger: e.store(t, e.open(t)), Clock: clocktesting.NewFakePassiveClock(nine), Batch: 30}
				leaders.Go(func() error {
					_, err := flusher.Flush(t.Context())
					return err
				})
			}
			if err := leaders.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := count(t, e.open(t), "ledger"); got != 400 {
				t.Errorf("%d rows", got)
			}
			if got := len(bounds(t, store, "payments")); got != 400 {
				t.Errorf("%d periods", got)
			}
		})
	})
}
