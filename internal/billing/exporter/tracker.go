package exporter

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// tracker knows what the cluster shows and what the ledger has, and keeps in memory only the difference: the states of
// namespaces that the ledger does not have yet. If the process ends, the next exporter finds the difference again.
type tracker struct {
	clusterID string
	api       client.WithWatch
	now       func() time.Time
	// feeds are the watches: Namespaces, then LNamespaces.
	feeds []*feed

	// mu guards the fields below. It is never held during a request, so the watches never wait for the warehouse.
	mu      sync.Mutex
	cluster *cluster
	// began is when everything that exists had been read; zero until then.
	began time.Time
	// open holds the open periods that the ledger has once unsent is in it, by namespace; nil until a comparison has
	// read them. openBefore holds those of the namespaces in unsent that the ledger has without it.
	open, openBefore map[string]billing.Open
	// unsent are events that are dated already, and sending the states that they are made of. The events are sent
	// unchanged until the ledger has them, so a lost answer doubles nothing.
	unsent  []billing.Event
	sending map[string][]billing.State
	// states holds, by namespace, the states that the ledger does not have. recorded limits their number.
	states   map[string][]billing.State
	recorded int
	// held has the namespaces whose last state is an end that waits: too many periods would end at once.
	held map[string]bool
	// ends counts the doubtful ends that were written since the last comparison.
	ends int
	// refused holds, by namespace, what the ledger refused because of its data since the last comparison, and
	// refusedBefore what it refused before that.
	refused, refusedBefore map[string]refusal
}

// refusal is a change that the ledger refused because of its data.
type refusal struct {
	tenantUID, reason string
	// at is the time of the earliest change of the namespace that the ledger lacks because of its refusals, last that of the latest.
	at, last time.Time
}

func newTracker(clusterID string, rules forest.Rules, api client.WithWatch, now func() time.Time) *tracker {
	t := &tracker{clusterID: clusterID, api: api, now: now, cluster: newCluster(rules), states: map[string][]billing.State{},
		held: map[string]bool{}, refused: map[string]refusal{}}
	for _, kind := range watchedKinds() {
		t.feeds = append(t.feeds, newFeed(t, kind))
	}
	return t
}

// Start implements manager.Runnable. Only the leader tracks.
func (t *tracker) Start(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	for _, f := range t.feeds { // LNamespaces are followed once all Namespaces are known
		following.Go(func() { f.followKind(ctx, t.api) })
		select {
		case <-ctx.Done():
			return nil
		case <-f.synced:
		}
	}
	t.beginTracking()
	return nil
}

func (t *tracker) beginTracking() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = t.now()
}

// isReady reports whether all Namespaces and LNamespaces were read once.
func (t *tracker) isReady() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.began.IsZero()
}

// objectChange is a change of one object: its facts, and whether the object is gone.
type objectChange struct {
	facts any
	gone  bool
}

// takeChange takes a change that a watch brought into the cluster's state, and records the new state of each namespace
// that it concerns.
func (t *tracker) takeChange(facts any, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applyChanges([]objectChange{{facts, gone}}, gone, false)
}

// replaceAll takes a complete list of one kind into the cluster's state, as one change. Known objects that it lacks are
// gone, but the API server has not sent their deletion.
func (t *tracker) replaceAll(sample any, all []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	exist := map[string]bool{}
	var changes []objectChange
	for _, facts := range all {
		exist[uidOf(facts)] = true
		changes = append(changes, objectChange{facts, false})
	}
	for _, facts := range t.cluster.listFacts(sample) {
		if !exist[uidOf(facts)] {
			changes = append(changes, objectChange{facts, true})
		}
	}
	t.applyChanges(changes, false, true)
}

// applyChanges applies changes of one moment. deleted reports that the API server sent the deletion of the object,
// listed that the changes are from a list.
func (t *tracker) applyChanges(changes []objectChange, deleted, listed bool) {
	before, wasPlaced := map[string]*billing.Desired{}, map[string]bool{}
	if !t.began.IsZero() { // until then nothing is recorded: the first comparison finds what the ledger lacks
		for _, c := range changes {
			for _, name := range t.cluster.findTree(nameOf(c.facts)) {
				before[name], wasPlaced[name] = t.cluster.findDesired(name)
			}
		}
	}
	made := map[string]time.Time{} // when the newest object was made to which a namespace owes its place
	for _, c := range changes {
		if at := t.cluster.applyChange(c.facts, c.gone); !at.IsZero() && !t.began.IsZero() {
			for _, name := range t.cluster.findTree(nameOf(c.facts)) {
				if at.After(made[name]) {
					made[name] = at
				}
			}
		}
	}
	seen := t.now()
	for name := range before {
		after, placed := t.cluster.findDesired(name)
		if !placed || wasPlaced[name] && sameDesired(before[name], after) {
			continue
		}
		state := billing.State{Desired: after, At: seen, Watched: true, Deleted: deleted && t.cluster.namespaces[name] == nil,
			Listed: listed}
		if at, isMade := made[name]; before[name] == nil && after != nil && isMade && !after.Made.Before(at) {
			state.At = after.Since
		}
		t.recordState(name, before[name], state)
	}
}

// recordState adds a state to those that the ledger lacks. Before the first comparison, it also adds the state before
// it: the ledger may have an older one.
func (t *tracker) recordState(name string, before *billing.Desired, state billing.State) {
	if before != nil {
		state.Left = before.TenantUID
	} else if open, is := t.open[name]; is {
		state.Left = open.TenantUID
	}
	states := t.states[name]
	if t.open == nil && len(states) == 0 && before != nil {
		states = append(states, billing.State{Desired: before, At: t.began})
	}
	if last := len(states) - 1; last >= 0 && states[last].Desired == nil && (t.held[name] || states[last].Listed) &&
		state.Desired != nil && !t.differs(name, states[:last], *state.Desired) {
		// The namespace is in its tenant again, as if it had never left.
		if t.states[name] = states[:last]; last == 0 {
			delete(t.states, name)
		}
		delete(t.held, name)
		return
	}
	delete(t.held, name)
	t.states[name] = append(states, state)
	t.limitStates()
}

// differs reports whether the namespace had other values after these states; with no states, in the ledger. Before the
// first comparison that comparison decides.
func (t *tracker) differs(name string, states []billing.State, d billing.Desired) bool {
	if len(states) > 0 {
		return !sameDesired(states[len(states)-1].Desired, &d)
	}
	open, is := t.open[name]
	return t.open != nil && (!is || open.Differs(d))
}

// mostStates limits the memory for states during an outage of the warehouse. Beyond it, each namespace keeps its last
// state only.
const mostStates = 100_000

func (t *tracker) limitStates() {
	if t.recorded++; t.recorded <= max(mostStates, 2*len(t.states)) {
		return
	}
	for name, states := range t.states {
		t.states[name] = slices.Clone(states[len(states)-1:])
	}
	t.recorded = len(t.states)
}

// findConfirmed returns the time until which all changes have been seen: the earliest of the times at which the watches
// were last confirmed. trouble is the error of a watch that fails; nil if none does.
func (t *tracker) findConfirmed() (until time.Time, trouble error) {
	for i, f := range t.feeds {
		confirmed, failed := f.readConfirmed()
		if i == 0 || confirmed.Before(until) {
			until = confirmed
		}
		if failed != nil && trouble == nil {
			trouble = failed
		}
	}
	return until, trouble
}
