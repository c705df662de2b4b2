package billing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Ledger is what a Flusher needs of a Store.
type Ledger interface {
	Append(ctx context.Context, events []Event) (added int64, err error)
	Trouble(err error) Trouble
}

// Flusher takes events from the outbox to the ledger, the oldest first. It deletes an event only after the ledger has it, so
// that a crash repeats an append and loses none.
type Flusher struct {
	Outbox *Outbox
	Ledger Ledger
	Clock  clock.PassiveClock

	// Batch is how many events go at once, at least 1.
	Batch int

	// Timeout is for one append; 0: the context alone bounds it.
	Timeout time.Duration

	// mu lets one flush happen at a time; rest and last are until when, and why, nothing is tried.
	mu   sync.Mutex
	rest Rest
	last error
}

// Flushed is what a flush has done, also if it ended with an error.
type Flushed struct {
	// Sent events are in the ledger now; Added of them were not there before.
	Sent  int
	Added int64

	// Parked are those that the ledger refused as data.
	Parked []Parked
}

// FlushError says why the rest of the outbox stays where it is.
type FlushError struct {
	Trouble Trouble
	// Until is the earliest time of another try; zero: with the next flush.
	Until time.Time
	Err   error
}

func (e *FlushError) Error() string {
	return fmt.Sprintf("flushing the billing outbox: %s: %v", e.Trouble, e.Err)
}

// Unwrap returns what the ledger said.
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
		if err := f.send(ctx, queued, &done); err != nil {
			return done, err
		}
	}
}

// send appends one batch. If the ledger refuses it as data, the rows that it means are found by halving and set aside.
func (f *Flusher) send(ctx context.Context, queued []Queued, done *Flushed) error {
	refused, err := f.halve(ctx, queued, &search{}, done)
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

// refusal is a row that the ledger doesn't take, alone either.
type refusal struct {
	queued Queued
	reason error
}

// search counts, by tenant, the single rows that were refused while none was taken.
type search struct {
	taken   bool
	refused map[string]int
}

// tooMany rows of one tenant refused: its others are set aside unasked. tooManyTenants refused and no row taken: that is about
// the table, such as a constraint of somebody else's, and not about rows. What is one tenant's fault never stops the others.
const (
	tooMany        = 8
	tooManyTenants = 8
)

func (f *Flusher) halve(ctx context.Context, queued []Queued, s *search, done *Flushed) (refused []refusal, err error) {
	queued, refused = s.setAside(queued)
	if len(queued) == 0 {
		return refused, nil
	}
	err = f.append(ctx, queued, done)
	if err == nil {
		s.taken = true
		return refused, f.Outbox.Delete(ctx, queued)
	}
	trouble := f.Ledger.Trouble(err)
	if trouble != InvalidData {
		return nil, f.hold(trouble, err)
	}
	if len(queued) == 1 {
		if s.count(queued[0].Event); len(s.refused) >= tooManyTenants && !s.taken {
			return nil, f.hold(Mismatch, err)
		}
		return append(refused, refusal{queued[0], err}), nil
	}
	middle := len(queued) / 2
	for _, half := range [][]Queued{queued[:middle], queued[middle:]} {
		found, err := f.halve(ctx, half, s, done)
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

var errOthersRefused = fmt.Errorf("set aside unasked, after %d other changes of this tenant were refused", tooMany)

// setAside takes out the rows of tenants of whom enough was refused.
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

func (f *Flusher) append(ctx context.Context, queued []Queued, done *Flushed) error {
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

func (f *Flusher) hold(trouble Trouble, err error) error {
	failed := &FlushError{Trouble: trouble, Err: err}
	if pause := trouble.Pause(); pause > 0 {
		now := f.Clock.Now()
		f.rest, failed.Until = RestFor(pause, now), now.Add(pause)
	}
	f.last = failed
	return failed
}
