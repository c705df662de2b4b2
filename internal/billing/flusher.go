package billing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Ledger is the part of a Store that a Flusher needs.
type Ledger interface {
	Append(ctx context.Context, events []Event) (added int64, err error)
	Trouble(err error) Trouble
}

// Flusher moves events from the outbox to the ledger, the oldest first. It deletes an event only after the ledger has it: after a crash an
// append may be repeated, but no event is lost.
type Flusher struct {
	Outbox *Outbox
	Ledger Ledger
	Clock  clock.PassiveClock

	// Batch is how many events one append has at most; it is at least 1.
	Batch int

	// Timeout limits one append; 0 means that only the context does.
	Timeout time.Duration

	// mu lets only one flush run at a time. While rest lasts, a flush only returns last, the error that began the rest.
	mu   sync.Mutex
	rest Rest
	last error
}

// Flushed counts what a flush has done, also if the flush ended with an error.
type Flushed struct {
	// Sent is how many of the events that were sent are in the ledger now; Added is how many events were not there before.
	Sent  int
	Added int64

	// Parked are the events that the ledger refused as data.
	Parked []Parked
}

// FlushError explains why the ledger took no more events: those left stay in the outbox.
type FlushError struct {
	Trouble Trouble
	// Until is the earliest time of another try; zero means that the next flush tries again.
	Until time.Time
	Err   error
}

func (e *FlushError) Error() string {
	return fmt.Sprintf("flushing the billing outbox: %s: %v", e.Trouble, e.Err)
}

// Unwrap returns the ledger's error.
func (e *FlushError) Unwrap() error { return e.Err }

// Flush empties the outbox. A *FlushError comes from the ledger; before its Until a flush does nothing but return it again.
// Any other error comes from the outbox itself.
func (f *Flusher) Flush(ctx context.Context) (Flushed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var done Flushed
	if f.rest.Lasts(f.Clock.Now()) {
		return done, f.last
	}
	for {
		queued, err := f.Outbox.Next(ctx, f.Batch)
		if err != nil || len(queued) == 0 {
			return done, err
		}
		if err := f.sendBatch(ctx, queued, &done); err != nil {
			return done, err
		}
	}
}

// sendBatch appends one batch. If the ledger refuses the batch as data, sendBatch finds the rows at fault by halving the batch, and parks
// them.
func (f *Flusher) sendBatch(ctx context.Context, queued []Queued, done *Flushed) error {
	refused, err := f.splitBatch(ctx, queued, &search{}, done)
	if err != nil {
		return err
	}
	for _, r := range refused {
		if err := f.Outbox.Park(ctx, r.queued, r.reason); err != nil {
			return err
		}
		done.Parked = append(done.Parked, Parked{Event: r.queued.Event, Reason: r.reason.Error(), ParkedAt: f.Clock.Now()})
	}
	return nil
}

// refusal is a row that the ledger refuses even when it is sent alone.
type refusal struct {
	queued Queued
	reason error
}

// search is the state of one search by halving: whether the ledger took any row, and how many single rows it refused, by tenant UID.
type search struct {
	taken   bool
	refused map[string]int
}

// tooMany is the number of refused rows of one tenant after which its other rows of the batch are parked without a try. tooManyTenants is
// the number of tenants with refused rows at which, if the ledger took no row, the table itself counts as faulty. An administrator may have
// added a constraint, for example. So rows of one tenant never stop the others.
const (
	tooMany        = 8
	tooManyTenants = 8
)

func (f *Flusher) splitBatch(ctx context.Context, queued []Queued, s *search, done *Flushed) (refused []refusal, err error) {
	queued, refused = s.setAside(queued)
	if len(queued) == 0 {
		return refused, nil
	}
	err = f.appendBatch(ctx, queued, done)
	if err == nil {
		s.taken = true
		return refused, f.Outbox.Delete(ctx, queued)
	}
	trouble := f.Ledger.Trouble(err)
	if trouble != InvalidData {
		return nil, f.recordTrouble(trouble, err)
	}
	if len(queued) == 1 {
		if s.count(queued[0].Event); len(s.refused) >= tooManyTenants && !s.taken {
			return nil, f.recordTrouble(Mismatch, err)
		}
		return append(refused, refusal{queued[0], err}), nil
	}
	middle := len(queued) / 2
	for _, half := range [][]Queued{queued[:middle], queued[middle:]} {
		found, err := f.splitBatch(ctx, half, s, done)
		if err != nil {
			return nil, err
		}
		refused = append(refused, found...)
	}
	return refused, nil
}

func (s *search) count(e Event) {
	if s.refused == nil {
		s.refused = map[string]int{}
	}
	s.refused[e.TenantUID]++
}

var errOthersRefused = fmt.Errorf("not sent, because the ledger refused %d other changes of this tenant", tooMany)

// setAside returns the rows that are still to be sent. Rows of a tenant that had tooMany rows refused already are returned as refusals
// instead.
func (s *search) setAside(queued []Queued) (rest []Queued, aside []refusal) {
	for _, q := range queued {
		if s.refused[q.Event.TenantUID] >= tooMany {
			aside = append(aside, refusal{q, errOthersRefused})
		} else {
			rest = append(rest, q)
		}
	}
	return rest, aside
}

func (f *Flusher) appendBatch(ctx context.Context, queued []Queued, done *Flushed) error {
	if f.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Timeout)
		defer cancel()
	}
	events := make([]Event, len(queued))
	for i, q := range queued {
		events[i] = q.Event
	}
	added, err := f.Ledger.Append(ctx, events)
	done.Added += added
	if err == nil {
		done.Sent += len(events)
	}
	return err
}

func (f *Flusher) recordTrouble(trouble Trouble, err error) error {
	failed := &FlushError{Trouble: trouble, Err: err}
	if pause := trouble.Pause(); pause > 0 {
		now := f.Clock.Now()
		f.rest, failed.Until = RestFor(pause, now), now.Add(pause)
	}
	f.last = failed
	return failed
}
