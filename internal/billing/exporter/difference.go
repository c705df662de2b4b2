package exporter

import (
	"slices"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
)

// takePeriods takes the open periods that a comparison has read, and records a state for each namespace in which
// cluster and ledger differ. It returns how many differ. Namespaces with recorded states have these already.
func (t *tracker) takePeriods(open []billing.Open) (found int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.now()
	t.ends = 0
	t.refusedBefore, t.refused = t.refused, map[string]refusal{}
	t.open = make(map[string]billing.Open, len(open))
	differ := func(name string, state billing.State) {
		if len(t.states[name]) == 0 {
			if refused, again := t.refusedBefore[name]; again { // the exporter has seen this change, and keeps its time
				state.At, state.Watched = refused.last, true
			}
			t.states[name] = []billing.State{state}
			found++
		}
	}
	for _, period := range open {
		d, placed := t.cluster.findDesired(period.Namespace)
		switch {
		case !placed:
		case d == nil:
			differ(period.Namespace, billing.State{At: seen, Left: period.TenantUID})
		case period.Differs(*d):
			differ(period.Namespace, billing.State{Desired: d, At: seen, Left: period.TenantUID})
		default: // most periods: the strings that are in memory already are shared
			period.Namespace, period.NamespaceUID, period.Tenant, period.TenantUID = t.cluster.namespaces[period.Namespace].Name,
				d.NamespaceUID, d.Tenant, d.TenantUID
			period.CostCenter, period.Owner, period.ContentHash = d.CostCenter, d.Owner, shareText(period.ContentHash)
		}
		t.open[period.Namespace] = period
	}
	for name := range t.cluster.namespaces {
		if _, is := t.open[name]; is {
			continue
		}
		if d, _ := t.cluster.findDesired(name); d != nil {
			differ(name, billing.State{Desired: d, At: seen})
		}
	}
	return found
}

// findBeginning returns the namespaces that have no open period and a tenant. The ledger's newest event of each must be
// known before plan.
func (t *tracker) findBeginning() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil || len(t.unsent) > 0 {
		return nil
	}
	for name, states := range t.states {
		if t.isBeginning(name, states) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (t *tracker) isBeginning(name string, states []billing.State) bool {
	_, is := t.open[name]
	return !is && slices.ContainsFunc(states, func(s billing.State) bool { return s.Desired != nil })
}

// planEvents dates the events of all recorded states, and returns them with those that an earlier try has not sent.
// asked are the namespaces that latest was read for; completeUntil is the watermark. An end that is held back is dated
// once it is holdFor old. held is the number of ends that planEvents holds back for the first time, because they are
// too many at once.
func (t *tracker) planEvents(asked []string, latest map[string]time.Time, completeUntil time.Time, holdFor time.Duration) (
	events []billing.Event, held int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil || len(t.unsent) > 0 {
		return t.unsent, 0
	}
	wasAsked := make(map[string]bool, len(asked))
	for _, name := range asked {
		wasAsked[name] = true
	}
	doubtful := t.guardEnds(holdFor)
	p := billing.Plan{Cluster: t.clusterID, Latest: latest, CompleteUntil: completeUntil}
	kept := map[string][]billing.State{}
	t.sending, t.openBefore = map[string][]billing.State{}, map[string]billing.Open{}
	for name, states := range t.states {
		if t.isBeginning(name, states) && !wasAsked[name] { // it came just now
			kept[name] = states
			continue
		}
		if doubtful[name] {
			last := len(states) - 1
			kept[name], states = states[last:], states[:last]
		}
		t.sending[name] = states
		events = append(events, t.planStates(p, name, states)...)
	}
	for name := range doubtful {
		if !t.held[name] {
			t.held[name] = true
			held++
		}
	}
	t.states, t.recorded, t.unsent = kept, len(kept), events
	slices.SortStableFunc(events, func(a, b billing.Event) int { return a.EffectiveAt.Compare(b.EffectiveAt) })
	return events, held
}

func (t *tracker) planStates(p billing.Plan, name string, states []billing.State) []billing.Event {
	pending := billing.Pending{Namespace: name, States: states}
	if open, is := t.open[name]; is {
		pending.Open, t.openBefore[name] = &open, open
	}
	events, open := p.Events(pending)
	if open == nil {
		delete(t.open, name)
	} else {
		t.open[name] = *open
	}
	return events
}

// guardEnds returns the namespaces whose last state is an end to hold back. A tree that lost a label, or a truncated
// list, must not end the periods of half a cluster. An end that was held back is written once it is holdFor old.
func (t *tracker) guardEnds(holdFor time.Duration) map[string]bool {
	doubtful, fresh := map[string]bool{}, 0
	now := t.now()
	for name, states := range t.states {
		last := states[len(states)-1]
		// The API server's own message of a deletion leaves no doubt.
		if _, is := t.open[name]; last.Desired != nil || last.Deleted || !is && len(states) == 1 {
			continue
		}
		switch {
		case !t.held[name]:
			doubtful[name] = true
			fresh++
		case now.Sub(last.At) < holdFor:
			doubtful[name] = true
		default:
			delete(t.held, name)
		}
	}
	// One end, or a fifth of the open periods, counted since the last comparison, is no mass end.
	if t.ends+fresh <= max(1, len(t.open)/5) {
		t.ends += fresh
		for name := range doubtful {
			if !t.held[name] {
				delete(doubtful, name)
			}
		}
	}
	return doubtful
}

// recordSent records that the ledger has the planned events, except those that it refused because of their data.
func (t *tracker) recordSent(refused []billing.Refused) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takeBack(refused)
	for _, event := range t.unsent {
		if known := t.refused[event.Namespace]; event.Op == billing.Set || event.TenantUID == known.tenantUID {
			delete(t.refused, event.Namespace)
		} // else a former tenant's period has ended, and what was refused is still refused
	}
	t.unsent, t.sending, t.openBefore = nil, nil, nil
	for _, r := range refused {
		at, last := r.Event.EffectiveAt, r.Event.EffectiveAt
		if before, again := t.refusedBefore[r.Event.Namespace]; again && before.at.Before(at) {
			at = before.at
		}
		if known, again := t.refused[r.Event.Namespace]; again && known.at.Before(at) {
			at = known.at
		}
		if known := t.refused[r.Event.Namespace]; known.last.After(last) { // the refused ones come in no order
			last = known.last
		}
		t.refused[r.Event.Namespace] = refusal{r.Event.TenantUID, r.Reason.Error(), at, last}
	}
}

// takeBack makes open what the ledger has without the refused events. Where a SET was refused that would have ended the
// period of a former tenant, it records an END of that period with the same date. An END has no content, so the ledger
// takes it: the former tenant pays no longer, also if the namespace is deleted before the SET is accepted.
func (t *tracker) takeBack(refused []billing.Refused) {
	isRefused, concerned := map[string]bool{}, map[string]bool{}
	for _, r := range refused {
		isRefused[r.Event.ID], concerned[r.Event.Namespace] = true, true
	}
	ended := map[string]time.Time{}
	for name := range concerned {
		delete(t.open, name)
		if before, is := t.openBefore[name]; is {
			t.open[name] = before
		}
	}
	for _, event := range t.unsent {
		if name := event.Namespace; concerned[name] {
			ended[name] = t.followEvent(event, isRefused[event.ID], ended[name])
		}
	}
	for name, at := range ended {
		if open, is := t.open[name]; is && !at.IsZero() {
			end := billing.State{At: at, Watched: true, Deleted: true, Left: open.TenantUID}
			t.states[name] = append([]billing.State{end}, t.states[name]...)
			t.recorded++
		}
	}
}

// followEvent makes open what the ledger has after one event. It returns when the open period has ended by a SET that
// was refused: ended, the time of the event, or zero.
func (t *tracker) followEvent(event billing.Event, refused bool, ended time.Time) time.Time {
	var open *billing.Open
	if known, is := t.open[event.Namespace]; is {
		open = &known
	}
	switch {
	case !refused:
		if open = event.Follow(open); open == nil {
			delete(t.open, event.Namespace)
		} else {
			t.open[event.Namespace] = *open
		}
		return time.Time{}
	case ended.IsZero() && event.EndsOther(open):
		return event.EffectiveAt
	}
	return ended
}

// findCompleteness returns settled, or the time of the earliest change that the ledger lacks if that is earlier.
func (t *tracker) findCompleteness(settled time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	earlier := func(at time.Time) {
		if at.Before(settled) {
			settled = at
		}
	}
	for _, states := range t.states {
		for _, state := range states {
			earlier(state.At)
		}
	}
	for _, r := range t.refused {
		earlier(r.at)
	}
	return settled
}

// backlog is what the reporter and the metrics show of the difference.
type backlog struct {
	tenants []*tenantFacts
	// changes is the number of changes that the ledger lacks, held those of them that are held back, and oldest the
	// time of the first.
	changes, held int
	oldest        time.Time
	// waits holds the time of the first change of each tenant that the ledger lacks, and refused why the ledger refused
	// one of its changes, by UID.
	waits   map[string]time.Time
	refused map[string]string
}

// readBacklog returns nil until everything was read once.
func (t *tracker) readBacklog() *backlog {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began.IsZero() {
		return nil
	}
	b := &backlog{tenants: t.cluster.listTenants(), held: len(t.held), waits: map[string]time.Time{}, refused: map[string]string{}}
	for _, all := range []map[string][]billing.State{t.sending, t.states} {
		for _, states := range all {
			b.addStates(states)
		}
	}
	for _, r := range t.refused {
		b.refused[r.tenantUID] = r.reason
	}
	return b
}

func (b *backlog) addStates(states []billing.State) {
	for _, state := range states {
		b.changes++
		if b.oldest.IsZero() || state.At.Before(b.oldest) {
			b.oldest = state.At
		}
		tenants := []string{state.Left}
		if state.Desired != nil {
			tenants = append(tenants, state.Desired.TenantUID)
		}
		for _, tenant := range tenants {
			if first, is := b.waits[tenant]; !is || state.At.Before(first) {
				b.waits[tenant] = state.At
			}
		}
	}
}
