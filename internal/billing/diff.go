package billing

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Desired holds the values that a namespace's open period should have.
type Desired struct {
	NamespaceUID, Tenant, TenantUID string
	Generation                      int64
	CostCenter, Owner               string
	Labels                          map[string]string
	// Since is when these values became true, by the API server's clock. It is the later of two times: when the namespace was created, or was
	// seen to come to the tenant; and when the tenant got its present cost center and owner.
	Since time.Time
	// Made is when the namespace was created.
	Made time.Time
}

// Comparison is what Diff compares.
type Comparison struct {
	// Cluster is the cluster's name in the events.
	Cluster string

	// Desired holds the namespaces that belong to a tenant, by name.
	Desired map[string]Desired

	// Unknown are namespaces whose tenant can't be determined now, for example because a parent is missing. Their periods stay as they are.
	Unknown map[string]bool

	// Complete reports that Desired has all namespaces of tenants. If it is false, a namespace that Desired lacks may only be unread, so no
	// period ends.
	Complete bool

	// Seen is when Desired was read. It dates the SETs for changes that no timestamp of the API server dates. It also dates each END that
	// has no date in LeftAt or Held.
	Seen time.Time

	// CompleteUntil is the ledger's watermark: the ledger has all changes before that time. A namespace that existed then and has no period
	// came to its tenant later, and no exporter saw when. The zero time means that no watermark is known.
	CompleteUntil time.Time

	// Open are the cluster's open periods, as they will be with the events in the outbox: see Overlaid.
	Open []Open

	// LeftAt dates the ENDs of namespaces that were seen to leave their tenants before Seen.
	LeftAt map[string]time.Time

	// Held is Plan.Held of the previous comparison. The EffectiveAt of each END in it is when the namespace was first seen to have left its
	// tenant. HoldFor is the least time that each END waits from then on.
	Held    []Event
	HoldFor time.Duration
}

// Plan is the events that make the ledger agree with the cluster. They are sealed, and sorted by namespace.
type Plan struct {
	Sets, Ends []Event

	// Held are ENDs that are too many at once. They wait; a later comparison appends those that it plans again.
	Held []Event

	seen time.Time
	made map[string]time.Time // by namespace of a SET: when the namespace was created
}

// Diff compares the desired values with the open periods. It plans a SET where a namespace has no open period, or where tenant, namespace
// UID or content differ. It plans an END for an open period whose namespace belongs to no tenant, if c.Complete is true and c.Unknown lacks
// the namespace. An event is never dated before the beginning of the period that it closes. If nothing differs, the plan is empty.
func Diff(c Comparison) Plan {
	plan := Plan{seen: c.Seen, made: map[string]time.Time{}}
	open := map[string]bool{} // the namespaces that have a period
	for _, period := range c.Open {
		open[period.Namespace] = true
		desired, wanted := c.Desired[period.Namespace]
		if !wanted {
			if c.Complete && !c.Unknown[period.Namespace] {
				plan.Ends = append(plan.Ends, period.End(c.Cluster, c.endOf(period.Namespace)))
			}
			continue
		}
		if event := desired.event(c.Cluster, period.Namespace); period.differs(event) {
			plan.Sets = append(plan.Sets, period.closePeriod(event, c.Seen))
		}
	}
	for namespace, desired := range c.Desired {
		if !open[namespace] {
			plan.Sets = append(plan.Sets, c.beginPeriod(desired, namespace))
		}
	}
	for _, set := range plan.Sets {
		plan.made[set.Namespace] = c.Desired[set.Namespace].Made
	}
	sortByNamespace(plan.Sets)
	sortByNamespace(plan.Ends)
	plan.Ends, plan.Held = c.guardEnds(plan.Ends, len(open))
	return plan
}

// endOf returns when the namespace was seen to leave its tenant: its time in LeftAt or, without one, Seen.
func (c Comparison) endOf(namespace string) time.Time {
	if at, ok := c.LeftAt[namespace]; ok {
		return at
	}
	return c.Seen
}

// beginPeriod returns the SET for a namespace without an open period.
func (c Comparison) beginPeriod(desired Desired, namespace string) Event {
	event := desired.event(c.Cluster, namespace)
	if !c.CompleteUntil.IsZero() && !desired.Made.After(c.CompleteUntil) {
		return event.at(c.Seen)
	}
	return event
}

func (p Open) differs(e Event) bool {
	return e.TenantUID != p.TenantUID || e.ContentHash != p.ContentHash || e.NamespaceUID != p.NamespaceUID
}

// closePeriod dates e, the SET that closes the period. For some changes, e has a timestamp of the API server already: when cost center and
// owner were set, or when the namespace was created. No timestamp dates a change of labels, or of the tenant of an existing namespace;
// these take effect at seen.
func (p Open) closePeriod(e Event, seen time.Time) Event {
	sameNamespace := e.NamespaceUID == p.NamespaceUID
	stamped := !sameNamespace || e.TenantUID == p.TenantUID && (e.CostCenter != p.CostCenter || e.Owner != p.Owner)
	if !stamped {
		e = e.at(seen)
	}
	return e.notBefore(p.ValidFrom.Add(tick))
}

// Namespaces returns the namespaces of the plan's events, for Store.Latest.
func (p Plan) Namespaces() []string {
	var namespaces []string
	for _, event := range p.Events() {
		namespaces = append(namespaces, event.Namespace)
	}
	return namespaces
}

// After returns the plan with events dated later where stored events require that. Each event is dated after the newest SET of its
// namespace. Each SET is also dated after the newest END of its namespace, of whichever tenant: a period that has ended never changes.
// Suppose that a SET's own date is not after that END, although the namespace existed then. Then nobody saw it come to its tenant.
// Such a SET is dated p.seen at the earliest.
func (p Plan) After(latest Latest) Plan {
	ended := map[string]time.Time{}
	for holding, end := range latest.Ends {
		if end.After(ended[holding.Namespace]) {
			ended[holding.Namespace] = end
		}
	}
	after := func(events []Event) []Event {
		events = slices.Clone(events)
		for i, event := range events {
			if set, ok := latest.Sets[event.Namespace]; ok {
				event = event.notBefore(set.Add(tick))
			}
			if end, ok := ended[event.Namespace]; ok && event.Op == Set && !event.EffectiveAt.After(end) {
				if existed := !p.made[event.Namespace].Add(stampPrecision).After(end); existed {
					event = event.notBefore(p.seen)
				}
				event = event.notBefore(end.Add(tick))
			}
			events[i] = event
		}
		return events
	}
	p.Sets, p.Ends = after(p.Sets), after(p.Ends)
	return p
}

// stampPrecision is the precision of a creationTimestamp.
const stampPrecision = time.Second

// With adds the events that wait in the outbox to l, and returns l.
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

// Events returns the events to append now: SETs and ENDs, without Held.
func (p Plan) Events() []Event { return slices.Concat(p.Sets, p.Ends) }

// guardEnds splits ENDs into those to append and those to hold back. It holds new ENDs back if they are more than one and more than a
// fifth of the open periods. A tree that lost a label, or an incomplete cache, must not end the periods of half a cluster. An END that is
// in c.Held already is appended with its date there, once that date is HoldFor ago.
func (c Comparison) guardEnds(ends []Event, open int) (through, held []Event) {
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

// Overlaid returns the open periods as they will be once the events that wait in the outbox are in the ledger.
func Overlaid(open []Open, waiting []Event) (overlaid []Open) {
	later := map[string][]Event{}
	for _, event := range waiting {
		event = event.Sealed()
		later[event.Namespace] = append(later[event.Namespace], event)
	}
	for _, period := range open {
		if now, is := replayEvents(period, true, later[period.Namespace]); is {
			overlaid = append(overlaid, now)
		}
		delete(later, period.Namespace)
	}
	for _, events := range later {
		if now, is := replayEvents(Open{}, false, events); is {
			overlaid = append(overlaid, now)
		}
	}
	return overlaid
}

// replayEvents applies events, in the order of their time, to a period, and returns the period that is open after them. Both the parameter
// named is and the second result report whether there is a period.
func replayEvents(period Open, is bool, events []Event) (Open, bool) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.EffectiveAt.Compare(b.EffectiveAt), cmp.Compare(a.Generation, b.Generation))
	})
	for _, e := range events {
		switch {
		case is && e.EffectiveAt.Before(period.ValidFrom): // the event came late: it took effect before this period
		case e.Op == Set && (!is || period.differs(e)):
			period, is = e.Opened(), true
		case e.Op == End && is && e.TenantUID == period.TenantUID && e.NamespaceUID == period.NamespaceUID:
			is = false
		}
	}
	return period, is
}

// Opened returns the period that the SET opens.
func (e Event) Opened() Open {
	return Open{Namespace: e.Namespace, NamespaceUID: e.NamespaceUID, Tenant: e.Tenant, TenantUID: e.TenantUID, Generation: e.Generation,
		CostCenter: e.CostCenter, Owner: e.Owner, ContentHash: e.ContentHash, ValidFrom: e.EffectiveAt}
}

// Begin returns the SET for a namespace without an open period. It is dated after ended, the end of the namespace's previous period; the
// zero time means that there was none.
func (d Desired) Begin(cluster, namespace string, ended time.Time) Event {
	event := d.event(cluster, namespace)
	if ended.IsZero() {
		return event
	}
	return event.notBefore(ended.Add(tick))
}

// Opened returns the period that is open once the ledger has these values for the namespace.
func (d Desired) Opened(cluster, namespace string) Open { return d.event(cluster, namespace).Opened() }

// Change returns the SET for a change of the namespace that was seen at seen, and false if nothing differs.
func (p Open) Change(cluster string, desired Desired, seen time.Time) (Event, bool) {
	event := desired.event(cluster, p.Namespace)
	if !p.differs(event) {
		return Event{}, false
	}
	if event.NamespaceUID == p.NamespaceUID { // a namespace that was made anew is dated by its creationTimestamp
		event = event.at(seen)
	}
	return event.notBefore(p.ValidFrom.Add(tick)), true
}

func (d Desired) event(cluster, namespace string) Event {
	return Event{Cluster: cluster, Namespace: namespace, NamespaceUID: d.NamespaceUID, Tenant: d.Tenant, TenantUID: d.TenantUID,
		Generation: d.Generation, Op: Set, CostCenter: d.CostCenter, Owner: d.Owner, Labels: d.Labels, EffectiveAt: d.Since}.Sealed()
}

// End returns the END that closes the period. It has no content of its own, so its hash is the period's.
func (p Open) End(cluster string, at time.Time) Event {
	return Event{Cluster: cluster, Namespace: p.Namespace, NamespaceUID: p.NamespaceUID, Tenant: p.Tenant, TenantUID: p.TenantUID,
		Generation: p.Generation, Op: End, ContentHash: p.ContentHash, EffectiveAt: at}.Sealed().notBefore(p.ValidFrom.Add(tick))
}

// notBefore returns the event, with the date earliest if its own date is before that.
func (e Event) notBefore(earliest time.Time) Event {
	if !e.EffectiveAt.Before(earliest) {
		return e
	}
	return e.at(earliest)
}

// at returns the event with the date instant.
func (e Event) at(instant time.Time) Event {
	e.EffectiveAt, e.ID = instant, ""
	return e.Sealed()
}

func sortByNamespace(events []Event) {
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(a.Namespace, b.Namespace) })
}
