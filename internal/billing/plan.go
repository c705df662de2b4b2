package billing

import (
	"time"
)

// Desired holds the values that a namespace's open period should have.
type Desired struct {
	NamespaceUID, Tenant, TenantUID string
	Generation                      int64
	CostCenter, Owner               string
	Labels                          map[string]string
	// Since is when these values became true, by the API server's own records. It is the later of two times: when the
	// namespace was created, and when the tenant got its present cost center and owner.
	Since time.Time
	// Made is when the namespace was created.
	Made time.Time
}

// State is what the cluster shows of one namespace from one time on.
type State struct {
	// Desired are the values of the tenant that holds the namespace; nil if no tenant does.
	Desired *Desired
	// At is when the exporter saw that the state began, by the API server's clock.
	At time.Time
	// Watched reports that a watch brought the change. Otherwise a comparison found it, and the state may have begun
	// long before At.
	Watched bool
	// Deleted reports that the API server sent the deletion of the namespace. Without it, the end of a period may come
	// from a truncated view.
	Deleted bool
	// Listed reports that a list lacked the namespace. If it is there again unchanged, the list was truncated.
	Listed bool
	// Left is the UID of the tenant that held the namespace before; "" if none did.
	Left string
}

// Pending is a namespace whose states the ledger does not have yet.
type Pending struct {
	Namespace string
	// Open is the open period in the ledger; nil if there is none.
	Open *Open
	// States are in the order in which the exporter saw them.
	States []State
}

// Plan dates the events of pending namespaces.
type Plan struct {
	// Cluster is the cluster's name in the events.
	Cluster string
	// Latest has the time of the newest event of each namespace that has no open period; see Store.Latest.
	Latest map[string]time.Time
	// CompleteUntil is the ledger's watermark; zero if there is none. What the ledger has until then stands: a
	// comparison dates no event before it.
	CompleteUntil time.Time
}

// Events returns the events that bring the ledger to the states, in order, and the period that is open after them; nil
// if none is. No event is dated before an event that the ledger has already, so a period that has ended keeps its end.
// States that change nothing have no event.
func (p Plan) Events(n Pending) (events []Event, open *Open) {
	open = n.Open
	latest := p.Latest[n.Namespace]
	if open != nil {
		latest = open.ValidFrom
	}
	known := latest
	for i, state := range n.States {
		var event Event
		switch {
		case i < len(n.States)-1 && state.At.Add(stampPrecision).Before(known):
			continue // another exporter has written this state already, or a later one
		case state.Desired == nil && open == nil:
			continue
		case state.Desired == nil:
			event = open.End(p.Cluster, state.At)
		case open == nil:
			event = p.planBegin(n.Namespace, state, latest)
		case !open.Differs(*state.Desired):
			continue
		default:
			event = p.planReplace(*open, state)
		}
		if !latest.IsZero() {
			event = event.notBefore(latest.Add(tick))
		}
		events, latest, open = append(events, event), event.EffectiveAt, event.openPeriod()
	}
	return events, open
}

// planBegin returns the SET of a namespace without an open period.
func (p Plan) planBegin(namespace string, s State, latest time.Time) Event {
	event := s.Desired.newEvent(p.Cluster, namespace)
	existed := !latest.IsZero() && !s.Desired.Made.Add(stampPrecision).After(latest)
	switch {
	case s.Watched:
		return event.withDate(s.At)
	// It existed at the watermark, or at its newest event. No exporter saw when it came to its tenant, so the time
	// counts when this one saw it there.
	case !p.CompleteUntil.IsZero() && !s.Desired.Made.After(p.CompleteUntil), existed && !event.EffectiveAt.After(latest):
		return event.withDate(s.At)
	}
	return event
}

// stampPrecision is the precision of a creationTimestamp.
const stampPrecision = time.Second

// planReplace returns the SET that closes a period by another. The API server records when a namespace was created, and
// when cost center and owner were set.
func (p Plan) planReplace(open Open, s State) Event {
	event := s.Desired.newEvent(p.Cluster, open.Namespace)
	madeAnew := event.NamespaceUID != open.NamespaceUID
	recorded := event.TenantUID == open.TenantUID && (event.CostCenter != open.CostCenter || event.Owner != open.Owner)
	switch {
	case madeAnew:
		return event
	// No record dates a change of labels, or of the tenant of an existing namespace.
	case s.Watched || !recorded:
		return event.withDate(s.At)
	case event.EffectiveAt.Before(p.CompleteUntil) && p.CompleteUntil.Before(s.At):
		return event.withDate(p.CompleteUntil) // an administrator's correction, for example, stands until then
	}
	return event
}

// Differs reports whether the period must be replaced for the namespace to have these values.
func (o Open) Differs(d Desired) bool {
	event := d.newEvent("", "")
	return event.TenantUID != o.TenantUID || event.ContentHash != o.ContentHash || event.NamespaceUID != o.NamespaceUID
}

// End returns the END that closes the period. It has no content of its own, so its hash is the period's.
func (o Open) End(cluster string, at time.Time) Event {
	return Event{Cluster: cluster, Namespace: o.Namespace, NamespaceUID: o.NamespaceUID, Tenant: o.Tenant, TenantUID: o.TenantUID,
		Generation: o.Generation, Op: End, ContentHash: o.ContentHash, EffectiveAt: at}.Sealed()
}

func (d Desired) newEvent(cluster, namespace string) Event {
	return Event{Cluster: cluster, Namespace: namespace, NamespaceUID: d.NamespaceUID, Tenant: d.Tenant, TenantUID: d.TenantUID,
		Generation: d.Generation, Op: Set, CostCenter: d.CostCenter, Owner: d.Owner, Labels: d.Labels, EffectiveAt: d.Since}.Sealed()
}

// Follow returns the period that is open after the event if open is before it, each nil if there is none. An END closes
// only a period of its holder.
func (e Event) Follow(open *Open) *Open {
	if e.Op == End && open != nil && !e.hasHolderOf(*open) {
		return open
	}
	return e.openPeriod()
}

// EndsOther reports whether the event is a SET that ends the period of another tenant, or of a former namespace of the
// name.
func (e Event) EndsOther(open *Open) bool { return e.Op == Set && open != nil && !e.hasHolderOf(*open) }

func (e Event) hasHolderOf(o Open) bool {
	return e.TenantUID == o.TenantUID && e.NamespaceUID == o.NamespaceUID
}

// openPeriod returns the period that is open after the event; nil after an END.
func (e Event) openPeriod() *Open {
	if e.Op == End {
		return nil
	}
	return &Open{Namespace: e.Namespace, NamespaceUID: e.NamespaceUID, Tenant: e.Tenant, TenantUID: e.TenantUID, Generation: e.Generation,
		CostCenter: e.CostCenter, Owner: e.Owner, ContentHash: e.ContentHash, ValidFrom: e.EffectiveAt}
}

// notBefore returns the event, with the date earliest if its own date is before that.
func (e Event) notBefore(earliest time.Time) Event {
	if !e.EffectiveAt.Before(earliest) {
		return e
	}
	return e.withDate(earliest)
}

// withDate returns the event with the date instant.
func (e Event) withDate(instant time.Time) Event {
	e.EffectiveAt, e.ID = instant, ""
	return e.Sealed()
}
