package billing

import (
	"iter"
	"maps"
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

	// Complete: Desired is all there is. Otherwise what it lacks may only not have been read yet, and nothing ends.
	Complete bool

	// Seen is when Desired was read: the end of what is gone.
	Seen time.Time

	// Open are the open periods of the cluster.
	Open iter.Seq2[Open, error]

	// Held is the Plan.Held of the comparison before this one.
	Held []Event
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
	// pending is what no open period has answered yet.
	pending := make(map[string]Event, len(c.Desired))
	for namespace, desired := range c.Desired {
		event := desired.event(c.Cluster, namespace)
		pending[event.Namespace] = event
	}
	var plan Plan
	open := 0
	for period, err := range c.Open {
		if err != nil {
			return Plan{}, err
		}
		open++
		event, wanted := pending[period.Namespace]
		delete(pending, period.Namespace)
		switch {
		case wanted && (event.TenantUID != period.TenantUID || event.ContentHash != period.ContentHash):
			plan.Sets = append(plan.Sets, event.notBefore(period.ValidFrom.Add(tick)))
		case !wanted && c.Complete:
			plan.Ends = append(plan.Ends, period.end(c.Cluster, c.Seen))
		}
	}
	plan.Sets = slices.AppendSeq(plan.Sets, maps.Values(pending))
	sortByNamespace(plan.Sets)
	sortByNamespace(plan.Ends)
	plan.Ends, plan.Held = guard(plan.Ends, c.Held, open)
	return plan, nil
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

// Events are those to append now.
func (p Plan) Events() []Event { return slices.Concat(p.Sets, p.Ends) }

// guard holds ENDs back if they are more than 50 and more than a fifth of all that is open: a tree whose label was lost, or a
// cache that lies, must not close the books of half a cluster. Those that the comparison before held are let through, as of then.
func guard(ends, before []Event, open int) (through, held []Event) {
	first := make(map[string]Event, len(before))
	for _, event := range before {
		first[event.Namespace] = event
	}
	var fresh []Event
	for _, event := range ends {
		if was, ok := first[event.Namespace]; ok && was.TenantUID == event.TenantUID && was.ContentHash == event.ContentHash {
			through = append(through, was)
		} else {
			fresh = append(fresh, event)
		}
	}
	if len(fresh) > max(50, open/5) {
		return through, fresh
	}
	through = append(through, fresh...)
	sortByNamespace(through)
	return through, nil
}

func (d Desired) event(cluster, namespace string) Event {
	return Event{Cluster: cluster, Namespace: namespace, NamespaceUID: d.NamespaceUID, Tenant: d.Tenant, TenantUID: d.TenantUID,
		Generation: d.Generation, Op: Set, CostCenter: d.CostCenter, Owner: d.Owner, Labels: d.Labels, EffectiveAt: d.Since}.Sealed()
}

// end closes the period; it says nothing new, and so carries the hash of what it closes.
func (p Open) end(cluster string, at time.Time) Event {
	return Event{Cluster: cluster, Namespace: p.Namespace, NamespaceUID: p.NamespaceUID, Tenant: p.Tenant, TenantUID: p.TenantUID,
		Generation: p.Generation, Op: End, ContentHash: p.ContentHash, EffectiveAt: at}.Sealed().notBefore(p.ValidFrom.Add(tick))
}

// notBefore is the event, at the earliest then.
func (e Event) notBefore(earliest time.Time) Event {
	if !e.EffectiveAt.Before(earliest) {
		return e
	}
	e.EffectiveAt, e.ID = earliest, ""
	return e.Sealed()
}

func sortByNamespace(events []Event) {
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(a.Namespace, b.Namespace) })
}
