package billing

import (
	"context"
	"database/sql"
	"iter"
	"time"
)

// Open is an open period, as Diff needs it: a namespace that a tenant holds now, and how it is billed.
type Open struct {
	Namespace, NamespaceUID, Tenant, TenantUID string
	Generation                                 int64
	CostCenter, Owner, ContentHash             string
	ValidFrom                                  time.Time
}

// OpenPeriods returns the periods of the cluster that have no end yet, in no order.
func (s *Store) OpenPeriods(ctx context.Context) ([]Open, error) {
	if s.text.ordered != "" {
		return openOf(s.orderedEvents(ctx))
	}
	return collectAll(readRows(ctx, s, "the open periods", s.text.open, func(rows *sql.Rows) (p Open, err error) {
		var from instant
		err = rows.Scan(&p.Namespace, &p.NamespaceUID, &p.Tenant, &p.TenantUID, &p.Generation, &p.CostCenter, &p.Owner, &p.ContentHash, &from)
		p.ValidFrom = from.Time
		return p, err
	}, s.options.Cluster))
}

// openEvent is an event and the period that it would open.
type openEvent struct {
	Open
	op Op
}

// orderedEvents streams the cluster's events, sorted by namespace and then in the order in which the view reads them.
func (s *Store) orderedEvents(ctx context.Context) iter.Seq2[openEvent, error] {
	return readRows(ctx, s, "the events", s.text.ordered, func(rows *sql.Rows) (e openEvent, err error) {
		var at instant
		err = rows.Scan(&e.Namespace, &e.NamespaceUID, &e.Tenant, &e.TenantUID, &e.Generation, &e.op, &e.CostCenter, &e.Owner,
			&e.ContentHash, &at)
		e.ValidFrom = at.Time
		return e, err
	}, s.options.Cluster)
}

// openOf returns the periods that ordered events leave open, by the same rules as the view of periods. A query of the
// view would sort and read all rows six times; openOf needs one pass.
func openOf(events iter.Seq2[openEvent, error]) (open []Open, err error) {
	var h heldPeriod
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if e.Namespace != h.last.Namespace {
			if h.open {
				open = append(open, h.since.Open)
			}
			h = heldPeriod{}
		}
		h.applyEvent(e)
	}
	if h.open {
		open = append(open, h.since.Open)
	}
	return open, nil
}

// heldPeriod is the state of one namespace after the events read so far.
type heldPeriod struct {
	// last is the last SET, or the END that closed its period if that is later. Before the first event, its namespace
	// is empty.
	last openEvent
	// since is the SET that began the open period, if one is open.
	since openEvent
	open  bool
}

// applyEvent applies one event. A SET opens a period if the holder or the content is new; an END closes the period only
// if it names the period's holder.
func (h *heldPeriod) applyEvent(e openEvent) {
	sameHolder := e.TenantUID == h.last.TenantUID && e.NamespaceUID == h.last.NamespaceUID
	switch {
	case e.op == Set:
		if !h.open || !sameHolder || e.ContentHash != h.last.ContentHash {
			h.since, h.open = e, true
		}
		h.last = e
	case h.open && sameHolder:
		h.last, h.open = e, false
	}
}
