package billing

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"
)

// Desired is what a namespace's open period should say.
type Desired struct {
	NamespaceUID, Tenant, TenantUID string
	Generation                      int64
	CostCenter, Owner               string
	Labels                          map[string]string
	// Since is when it became so, by the API server's clock: when the namespace came to the tenant or, if that is later, when
	// the tenant began to be billed so.
	Since time.Time
}

// Comparison is what Diff compares.
type Comparison struct {
	// Cluster that the events will carry.
	Cluster string

	// Desired by namespace.
	Desired map[string]Desired

	// Unknown are namespaces of which nobody can say now whose they are, such as those whose way to a root is lost: their
	// periods stay as they are.
	Unknown map[string]bool

	// Complete: Desired is all there is. Otherwise what it lacks may only not have been read yet, and nothing ends.
	Complete bool

	// Seen is when Desired was read: the end of what is gone, and the beginning of what no stamp of the API server dates.
	Seen time.Time

	// Open are the open periods of the cluster, with what waits in the outbox: see Overlaid.
	Open iter.Seq2[Open, error]

	// Held is the Plan.Held of the comparison before this one, dated when each was first seen; HoldFor is how long it waits at
	// least.
	Held    []Event
	HoldFor time.Duration
}

// Plan is what takes the ledger from what it says to what is. Events are sealed, and sorted by namespace.
type Plan struct {
	Sets, Ends []Event

	// Held are ENDs that are too many at once: they are for the next comparison, which lets through what it finds too.
	Held []Event
}

// Diff compares what should be with the open periods: where tenant or content differ there is a SET, where nothing should be
// an END. A change is never dated before the period that it closes. Where the ledger is as it should be the plan is empty.
func Diff(c Comparison) (Plan, error) {
	var plan Plan
	open := map[string]bool{} // the namespaces that have a period
	for period, err := range c.Open {
		if err != nil {
			return Plan{}, err
		}
		open[period.Namespace] = true
		desired, wanted := c.Desired[period.Namespace]
		if !wanted {
			if c.Complete && !c.Unknown[period.Namespace] {
				plan.Ends = append(plan.Ends, period.End(c.Cluster, c.Seen))
			}
			continue
		}
		if event := desired.event(c.Cluster, period.Namespace); period.differs(event) {
			plan.Sets = append(plan.Sets, period.follow(event, c.Seen))
		}
	}
	for namespace, desired := range c.Desired {
		if !open[namespace] {
			plan.Sets = append(plan.Sets, desired.event(c.Cluster, namespace))
		}
	}
	sortByNamespace(plan.Sets)
	sortByNamespace(plan.Ends)
	plan.Ends, plan.Held = c.guard(plan.Ends, len(open))
	return plan, nil
}

func (p Open) differs(e Event) bool {
	return e.TenantUID != p.TenantUID || e.ContentHash != p.ContentHash || e.NamespaceUID != p.NamespaceUID
}

// follow dates the SET that closes the period. The stamp says when cost center and owner became so, or the namespace was made;
// it says nothing of labels, nor of when a namespace that was there before came to another tenant: that counts from when it was
// seen, never from a stamp that is older than the change.
func (p Open) follow(e Event, seen time.Time) Event {
	sameNamespace := e.NamespaceUID == p.NamespaceUID
	stamped := !sameNamespace || e.TenantUID == p.TenantUID && (e.CostCenter != p.CostCenter || e.Owner != p.Owner)
	if !stamped {
		e = e.at(seen)
	}
	return e.notBefore(p.ValidFrom.Add(tick))
}

// Namespaces are those of the events, for Store.Latest.
func (p Plan) Namespaces() []string {
	var namespaces []string
	for _, event := range p.Events() {
		namespaces = append(namespaces, event.Namespace)
	}
	return namespaces
}

// After dates each event after those that would undo it: the SETs of its namespace and, for a SET, the last END of its own
// holding. A namespace that leaves a tenant and comes back within the second that the API server's stamps are cut to, or the
// hour that our clock is ahead, would otherwise be ended by the END of its first stay, and each later comparison would propose
// the same event again, for nothing.
func (p Plan) After(latest Latest) Plan {
	after := func(events []Event) []Event {
		events = slices.Clone(events)
		for i, event := range events {
			if set, ok := latest.Sets[event.Namespace]; ok {
				event = event.notBefore(set.Add(tick))
			}
			if end, ok := latest.Ends[Holding{event.Namespace, event.TenantUID}]; ok && event.Op == Set {
				event = event.notBefore(end.Add(tick))
			}
			events[i] = event
		}
		return events
	}
	p.Sets, p.Ends = after(p.Sets), after(p.Ends)
	return p
}

// With is the latest, also of events that wait in the outbox.
func (l Latest) With(waiting []Event) Latest {
	for _, e := range waiting {
		holding := Holding{e.Namespace, e.TenantUID}
		switch {
		case e.Op == End && e.EffectiveAt.After(l.Ends[holding]):
			l.Ends[holding] = e.EffectiveAt
		case e.Op == Set && e.EffectiveAt.After(l.Sets[e.Namespace]):
			l.Sets[e.Namespace] = e.EffectiveAt
		}
	}
	return l
}

// Events are those to append now.
func (p Plan) Events() []Event { return slices.Concat(p.Sets, p.Ends) }

// guard holds ENDs back if they are more than one and more than a fifth of all that is open: a tree whose label was lost, or a
// cache that lies, must not close the books of half a cluster. Those that an earlier comparison held, and long enough ago, are
// let through, as of then.
func (c Comparison) guard(ends []Event, open int) (through, held []Event) {
	first := make(map[string]Event, len(c.Held))
	for _, event := range c.Held {
		first[event.Namespace] = event
	}
	var fresh, waiting []Event
	for _, event := range ends {
		was, ok := first[event.Namespace]
		switch {
		case !ok || was.TenantUID != event.TenantUID || was.NamespaceUID != event.NamespaceUID || was.ContentHash != event.ContentHash:
			fresh = append(fresh, event)
		case c.HoldFor > 0 && c.Seen.Sub(was.EffectiveAt) < c.HoldFor:
			waiting = append(waiting, was)
		default:
			through = append(through, was)
		}
	}
	if len(fresh) > max(1, open/5) {
		held = append(waiting, fresh...)
		sortByNamespace(held)
		return through, held
	}
	through = append(through, fresh...)
	sortByNamespace(through)
	return through, waiting
}

// Overlaid are open periods as they will be when the events that wait in the outbox have arrived.
func Overlaid(open iter.Seq2[Open, error], waiting []Event) iter.Seq2[Open, error] {
	if len(waiting) == 0 {
		return open
	}
	later := map[string][]Event{}
	for _, event := range waiting {
		event = event.Sealed()
		later[event.Namespace] = append(later[event.Namespace], event)
	}
	return func(yield func(Open, error) bool) {
		for period, err := range open {
			if err != nil {
				yield(period, err)
				return
			}
			now, is := replay(period, true, later[period.Namespace])
			delete(later, period.Namespace)
			if is && !yield(now, nil) {
				return
			}
		}
		for _, events := range later {
			if now, is := replay(Open{}, false, events); is && !yield(now, nil) {
				return
			}
		}
	}
}

// replay is the period that is open after the events, in the order of their time.
func replay(period Open, is bool, events []Event) (Open, bool) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.EffectiveAt.Compare(b.EffectiveAt), cmp.Compare(a.Generation, b.Generation))
	})
	for _, e := range events {
		switch {
		case is && e.EffectiveAt.Before(period.ValidFrom): // it is late
		case e.Op == Set && (!is || period.differs(e)):
			period, is = e.Opened(), true
		case e.Op == End && is && e.TenantUID == period.TenantUID && e.NamespaceUID == period.NamespaceUID:
			is = false
		}
	}
	return period, is
}

// Stream yields periods that were read before.
func Stream(open []Open) iter.Seq2[Open, error] {
	return func(yield func(Open, error) bool) {
		for _, period := range open {
			if !yield(period, nil) {
				return
			}
		}
	}
}

// Opened is the period that the SET opens.
func (e Event) Opened() Open {
	return Open{Namespace: e.Namespace, NamespaceUID: e.NamespaceUID, Tenant: e.Tenant, TenantUID: e.TenantUID, Generation: e.Generation,
		CostCenter: e.CostCenter, Owner: e.Owner, ContentHash: e.ContentHash, ValidFrom: e.EffectiveAt}
}

// Begin is the SET for a namespace without an open period, at the earliest after the end of the one before.
func (d Desired) Begin(cluster, namespace string, ended time.Time) Event {
	event := d.event(cluster, namespace)
	if ended.IsZero() {
		return event
	}
	return event.notBefore(ended.Add(tick))
}

// Opened is the period that is open once the namespace is billed so.
func (d Desired) Opened(cluster, namespace string) Open { return d.event(cluster, namespace).Opened() }

// Change is the SET that closes the period because of a change that was seen just now; none if nothing differs.
func (p Open) Change(cluster string, desired Desired, seen time.Time) (Event, bool) {
	event := desired.event(cluster, p.Namespace)
	if !p.differs(event) {
		return Event{}, false
	}
	if event.NamespaceUID == p.NamespaceUID { // otherwise its creation has a stamp
		event = event.at(seen)
	}
	return event.notBefore(p.ValidFrom.Add(tick)), true
}

func (d Desired) event(cluster, namespace string) Event {
	return Event{Cluster: cluster, Namespace: namespace, NamespaceUID: d.NamespaceUID, Tenant: d.Tenant, TenantUID: d.TenantUID,
		Generation: d.Generation, Op: Set, CostCenter: d.CostCenter, Owner: d.Owner, Labels: d.Labels, EffectiveAt: d.Since}.Sealed()
}

// End closes the period; it says nothing new, and so carries the hash of what it closes.
func (p Open) End(cluster string, at time.Time) Event {
	return Event{Cluster: cluster, Namespace: p.Namespace, NamespaceUID: p.NamespaceUID, Tenant: p.Tenant, TenantUID: p.TenantUID,
		Generation: p.Generation, Op: End, ContentHash: p.ContentHash, EffectiveAt: at}.Sealed().notBefore(p.ValidFrom.Add(tick))
}

// notBefore is the event, at the earliest then.
func (e Event) notBefore(earliest time.Time) Event {
	if !e.EffectiveAt.Before(earliest) {
		return e
	}
	return e.at(earliest)
}

// at is the event, then.
func (e Event) at(instant time.Time) Event {
	e.EffectiveAt, e.ID = instant, ""
	return e.Sealed()
}

func sortByNamespace(events []Event) {
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(a.Namespace, b.Namespace) })
}
