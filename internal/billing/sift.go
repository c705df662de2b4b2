package billing

import (
	"context"
	"fmt"
)

// Refused is an event that the ledger refuses because of its data, and why.
type Refused struct {
	Event  Event
	Reason error
}

// Sift stores events as Append does. If the ledger refuses a batch as data, Sift finds the rows at fault by halving,
// and stores the others. After any other error some events may be stored; sifting the same events again is harmless.
func (s *Store) Sift(ctx context.Context, events []Event) (added int64, refused []Refused, err error) {
	search := sifting{store: s, refused: map[string]map[Op]int{}}
	for len(events) > 0 {
		batch := events[:min(len(events), s.options.MaxRows)]
		events = events[len(batch):]
		if err := search.sendEvents(ctx, batch); err != nil {
			return search.added, nil, err
		}
	}
	return search.added, search.found, nil
}

// tooMany is the number of refused SETs, or ENDs, of one tenant after which its others of the batch count as refused without
// a try. An END has no content, so it is tried although SETs were refused. tooManyTenants is the number of tenants with
// refused rows at which, if the ledger took no row, the table itself counts as faulty. An administrator may have added a
// constraint, for example. So rows of one tenant never stop the others.
const (
	tooMany        = 8
	tooManyTenants = 8
)

var errOthersRefused = fmt.Errorf("not sent, because the ledger refused %d other changes of this tenant", tooMany)

type sifting struct {
	store *Store
	added int64
	taken bool // the ledger has taken a row
	// refused counts the refused rows of each tenant, by UID and by what they do.
	refused map[string]map[Op]int
	found   []Refused
}

func (s *sifting) sendEvents(ctx context.Context, events []Event) error {
	var rest []Event
	for _, event := range events {
		if s.refused[event.TenantUID][event.Op] >= tooMany {
			s.found = append(s.found, Refused{event, errOthersRefused})
		} else {
			rest = append(rest, event)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	added, err := s.store.Append(ctx, rest)
	s.added += added
	switch {
	case err == nil:
		s.taken = true
		return nil
	case s.store.Trouble(err) != InvalidData:
		return err
	case len(rest) == 1:
		if s.countRefused(rest[0]); len(s.refused) >= tooManyTenants && !s.taken {
			return &SchemaError{Table: s.store.options.Table, Problems: []string{"it refuses every row as data: " + err.Error()}}
		}
		s.found = append(s.found, Refused{rest[0], err})
		return nil
	}
	middle := len(rest) / 2
	if err := s.sendEvents(ctx, rest[:middle]); err != nil {
		return err
	}
	return s.sendEvents(ctx, rest[middle:])
}

func (s *sifting) countRefused(e Event) {
	if s.refused[e.TenantUID] == nil {
		s.refused[e.TenantUID] = map[Op]int{}
	}
	s.refused[e.TenantUID][e.Op]++
}
