package exporter

import (
	"context"
	"errors"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
)

var errAway = errors.New("the warehouse is away")

// link is the way from one exporter to the ledger. Each statement may fail: before the ledger has it, or after.
type link struct {
	ledger
	before, after func(statement string) error
}

func (l *link) do(statement string, run func() error) error {
	if err := l.before(statement); err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	return l.after(statement)
}

func (l *link) OpenPeriods(ctx context.Context) (open []billing.Open, err error) {
	err = l.do("open", func() (err error) { open, err = l.ledger.OpenPeriods(ctx); return err })
	return open, err
}

func (l *link) Latest(ctx context.Context, names []string) (latest map[string]time.Time, err error) {
	err = l.do("latest", func() (err error) { latest, err = l.ledger.Latest(ctx, names); return err })
	return latest, err
}

func (l *link) Sift(ctx context.Context, events []billing.Event) (added int64, refused []billing.Refused, err error) {
	half := len(events) / 2 // a statement stores its batch or nothing, but a write has several statements
	for _, part := range [][]billing.Event{events[:half], events[half:]} {
		err = l.do("insert", func() error {
			n, more, err := l.ledger.Sift(ctx, part)
			added, refused = added+n, append(refused, more...)
			return err
		})
		if err != nil {
			return added, nil, err
		}
	}
	return added, refused, nil
}

func (l *link) MoveWatermark(ctx context.Context, id string, until time.Time) error {
	return l.do("watermark", func() error { return l.ledger.MoveWatermark(ctx, id, until) })
}

func (l *link) StartRun(ctx context.Context, run billing.Run) error {
	return l.do("run", func() error { return l.ledger.StartRun(ctx, run) })
}

func (l *link) Trouble(error) billing.Trouble { return billing.Unavailable }
