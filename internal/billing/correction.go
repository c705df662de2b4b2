package billing

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

var reasonColumns = []string{"event_id", "author", "reason", "recorded_at"}

// Correction describes how the periods of a tenant should have been billed from From until Until.
type Correction struct {
	Tenant      string
	From, Until time.Time
	// CostCenter and Owner replace the billed values; nil leaves a value as it is.
	CostCenter, Owner *string
	// Author and Reason are stored in the table of reasons.
	Author, Reason string
}

// Reason names who made a correcting event, and why.
type Reason struct {
	EventID, Author, Reason string
	RecordedAt              time.Time
}

// Correct appends events that correct the tenant's periods, and changes no stored row. For each period that the correction changes, it
// appends a SET at the period's beginning or at From, whichever is later, and, if the period lasts beyond Until, one at Until with the
// values billed before. It returns the appended events.
func (s *Store) Correct(ctx context.Context, c Correction) ([]Event, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	periods, err := s.History(ctx, c.Tenant)
	if err != nil {
		return nil, err
	}
	var events []Event
	reasons := map[string]string{}
	for _, p := range periods {
		for i, e := range c.events(p) {
			events, reasons[e.ID] = append(events, e), c.Reason
			if i > 0 {
				reasons[e.ID] = resumes + c.Reason
			}
		}
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("tenant %q: the ledger has no period between %s and %s that the correction would change; "+
			"`manager billing history %s` shows what it has", c.Tenant, instantText(c.From), instantText(c.Until), c.Tenant)
	}
	for _, e := range events { // the reasons come first, so that no correction is ever without one
		if _, err := s.db.ExecContext(ctx, s.text.giveReason, e.ID, cleanText(c.Author), cleanText(reasons[e.ID])); err != nil {
			return nil, fmt.Errorf("writing the reason into %s%s: %w", s.options.Table, reasonsSuffix, err)
		}
	}
	_, err = s.Append(ctx, events)
	return events, err
}

// resumes is the prefix of the reason of a SET that restores, at Until, the values billed before the correction.
const resumes = "resumes what was billed before: "

func (c Correction) validate() error {
	switch {
	case c.Author == "" || c.Reason == "":
		return fmt.Errorf("a correction needs an author and a reason")
	case c.CostCenter == nil && c.Owner == nil:
		return fmt.Errorf("a correction changes a cost center or an owner: name at least one")
	case !c.From.Before(c.Until):
		return fmt.Errorf("a correction must end after it begins, but it begins at %s and ends at %s", instantText(c.From), instantText(c.Until))
	}
	return nil
}

// events returns the events for one period: none if the period lies outside the correction or has these values already; else the
// correcting SET and, if the period lasts longer than the correction, the SET that restores the old values.
func (c Correction) events(p Period) []Event {
	from, until := c.From, c.Until
	if from.Before(p.ValidFrom) {
		from = p.ValidFrom
	}
	ended := !p.ValidTo.IsZero() && !p.ValidTo.After(until)
	if !from.Before(until) || !p.ValidTo.IsZero() && !from.Before(p.ValidTo) {
		return nil
	}
	was := Event{Cluster: p.Cluster, Namespace: p.Namespace, NamespaceUID: p.NamespaceUID, Tenant: p.Tenant, TenantUID: p.TenantUID,
		Generation: p.Generation, Op: Set, CostCenter: p.CostCenter, Owner: p.Owner, Labels: p.Labels, EffectiveAt: until}
	is := was
	is.EffectiveAt = from
	if c.CostCenter != nil {
		is.CostCenter = *c.CostCenter
	}
	if c.Owner != nil {
		is.Owner = *c.Owner
	}
	is, was = is.Sealed(), was.Sealed()
	switch {
	case is.ContentHash == p.ContentHash:
		return nil
	case ended: // the event that ends the period is in the ledger already
		return []Event{is}
	}
	return []Event{is, was}
}

// Reasons returns the reasons of all corrections of a tenant, the oldest first.
func (s *Store) Reasons(ctx context.Context, tenant string) ([]Reason, error) {
	return collectAll(readRows(ctx, s, "the reasons", s.text.corrections, func(rows *sql.Rows) (r Reason, err error) {
		var at instant
		err = rows.Scan(&r.EventID, &r.Author, &r.Reason, &at)
		r.RecordedAt = at.Time
		return r, err
	}, s.options.Cluster, cleanText(tenant)))
}
