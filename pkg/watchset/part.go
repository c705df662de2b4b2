package watchset

import (
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// part is one informer: a list and watch with the store that it fills, shared by all leases with an equal key. The
// Set's lock guards its fields, except the selection.
type part struct {
	set       *Set
	selection selection
	contents  contents
	demand    demand
	agenda    agenda
	run       *run // nil unless the part lists or watches
	admitted  bool
	gone      bool

	state    State
	since    time.Time
	err      error
	settled  State // the last settled state, for which owners were enqueued
	attempts int   // failed attempts to be Synced since the part was Synced last
	lastSync time.Time
	cause    error // the last error, for a *DegradedError
	global   bool  // discovery said that the resource is cluster-scoped
	resolved bool  // the selection has a target that is no guess
}

func (s *Set) newPart(key partKey, r Request) *part {
	r.Scope = Scope{kind: key.kind, namespace: key.namespace, name: key.name}
	p := &part{
		set: s, demand: newDemand(), state: Pending, since: time.Now(),
		selection: selection{key: key, request: r, options: &s.options}, resolved: key.gvk.Empty(),
	}
	p.selection.target.Store(s.firstTargetOf(key.view))
	p.contents.store = p.selection.newObjectStore(nil)
	return p
}

// hasCompleteStore reports whether the store may be read: it has all objects that exist (Synced), or those seen last
// (Degraded). A part that is Degraded before its first list has none.
func (p *part) hasCompleteStore() bool { return p.state == Synced || p.state == Degraded }

// beginListAndWatch starts to list and watch, if the Set runs and the part doesn't. It reviews no rights, because the
// first request shows whether one is missing.
func (p *part) beginListAndWatch() {
	if !p.set.mayMakeRequests() || p.run != nil {
		return
	}
	p.agenda.retry = time.Time{}
	p.set.own.startRBACWatches()
	p.run = newRun(p)
	p.set.running.Go(p.run.listAndWatch)
}

// haltRunAndTimer ends the part for good: its run and its timer.
func (p *part) haltRunAndTimer() {
	p.gone = true
	p.agenda.stopTimer()
	p.endRun()
}

func (p *part) endRun() {
	if p.run != nil {
		p.run.endRunLocked()
		p.run = nil
	}
}

// closeUnneededPart ends a part that no lease needs, and lets another part begin in its place.
func (p *part) closeUnneededPart() {
	if p.gone {
		return
	}
	p.haltRunAndTimer()
	if p.selection.isWatchedForSet() {
		return
	}
	p.countStateTransition(p.state, "")
	if p.selection.key.sink != nil {
		p.selection.key.sink.State(p.selection.key.namespace, Status{State: Pending})
	}
	p.set.parts.removePart(p)
	p.set.metrics.removeSeriesOf(p)
	if p.admitted {
		p.set.parts.admitted--
		p.set.admitWaitingParts()
	}
}

// enterState changes the state, wakes calls of Wait, and enqueues owners if the state is settled and new to them.
func (p *part) enterState(state State, err error) {
	from, changed := p.state, p.state != state
	p.state, p.err = state, err
	if changed {
		p.since = time.Now()
		p.countStateTransition(from, state)
	}
	p.reportStateToSink()
	for l := range p.demand.leases {
		l.wakeWaitingCalls()
	}
	if !state.isSettled() {
		return
	}
	news := state != p.settled
	if news {
		p.logStateChange(p.settled)
		p.settled = state
	}
	for l, waits := range p.demand.leases {
		if news || waits {
			p.demand.leases[l] = false
			p.set.listeners.enqueueOwnerLater(l.owner, &p.set.lock)
		}
	}
}

// countStateTransition updates the metric of transitions and the numbers of parts by state. to is "" for a part that is
// closed.
func (p *part) countStateTransition(from, to State) {
	if p.selection.isWatchedForSet() {
		return
	}
	if to != "" {
		p.set.metrics.countTransition(p, from, to)
	}
	p.set.own.countStateChange(from, to)
	if p.selection.mayChangeVersion() && (from == Pending) != (to == "") {
		p.set.own.countChanging(from == Pending)
	}
}

// logStateChange writes one log line for a change of the state; for the Set's own parts at verbosity 1.
func (p *part) logStateChange(before State) {
	log := p.set.log
	if p.selection.isWatchedForSet() {
		log = log.V(1)
	}
	values := []any{"resource", p.selection.targetResource().String(), "scope", p.selection.request.Scope.String(), "namespace",
		p.selection.key.namespace,
		"from", string(before), "to", string(p.state)}
	if p.err != nil {
		values = append(values, "reason", p.err.Error())
	}
	log.Info("informer changed its state", values...)
}

// endRunAndEmpty ends the run and empties the store. It sends no deletion events, because the objects may still exist.
// When the back-off ends, or a hint arrives, the Set asks again whether the part is allowed and its kind is served. If
// so, the part lists and watches again.
func (p *part) endRunAndEmpty(state State, err error) {
	p.endRun()
	memory := p.takePendingEntries(state)
	p.contents.replaceReadStore(p.selection.newObjectStore(nil))
	p.contents.known = nil
	// The kind may come back under another resource, or in another scope, so discovery is asked again.
	p.resolved = p.resolved && (state != NotServed || !p.selection.requestNamesKind())
	p.agenda.verify, p.agenda.degrade = time.Time{}, time.Time{}
	p.agenda.retry = time.Now().Add(p.set.options.Backoff.delayAfterAttempts(p.attempts))
	p.attempts++
	p.enterState(state, err)
	p.agenda.armTimer(p)
	for l := range p.demand.leases {
		l.splitClusterWidePart(p, memory)
	}
}

// takePendingEntries drops p's pending events from the feeds, except deletions. If an Auto lease changes from the
// cluster to its namespaces, it returns the objects that each feed got before, so that the parts of the namespaces pass
// on only differences.
func (p *part) takePendingEntries(state State) map[*feed]map[string]client.Object {
	memory := map[*feed]map[string]client.Object{}
	for f := range p.feedsOfPart() {
		unseen := f.dropPendingOf(p)
		if state != Forbidden || !p.demand.isHeldByAutoLease(p, f.controller) {
			continue
		}
		told := p.contents.objectsByName()
		for key, before := range unseen {
			delete(told, key)
			if before != nil {
				told[key] = before
			}
		}
		memory[f] = told
	}
	return memory
}

// becomeSynced makes the part Synced. The caller knows that the store is complete and a watch is open.
func (p *part) becomeSynced() {
	p.agenda.degrade, p.cause = time.Time{}, nil
	if p.state == Synced {
		return
	}
	p.attempts = 0
	if !p.selection.isWatchedForSet() {
		// The server lets an open watch go on after its right is revoked, so the right is checked regularly.
		p.agenda.verify = p.set.options.nextRegularCheck()
	}
	p.agenda.armTimer(p)
	p.enterState(Synced, nil)
	for l := range p.demand.leases {
		l.rejoinClusterWidePart(p)
	}
}

// becomeDegraded makes the part Degraded unless its watch works again. The store keeps its objects.
func (p *part) becomeDegraded() {
	if p.run == nil || p.run.isWatchWorking() {
		return
	}
	p.run.freeListSlot() // a list that hangs must not keep other parts from starting
	if p.state != Degraded {
		p.enterState(Degraded, p.newDegradedError())
	}
}

func (p *part) newDegradedError() *DegradedError {
	cause := p.cause
	if cause == nil {
		cause = errors.New("the server doesn't answer")
	}
	return &DegradedError{Resource: p.selection.targetResource(), Namespace: p.selection.key.namespace, LastSync: p.lastSync, Cause: cause}
}

// replaceStateError replaces the error of a state that goes on, and reports it to the Sink if the error's text is new.
func (p *part) replaceStateError(err error) {
	news := p.err == nil || p.err.Error() != err.Error()
	if p.err = err; news {
		p.reportStateToSink()
	}
}

// isWaitingForRoom reports whether the part waits because as many other parts run as MaxInformers allows.
func (p *part) isWaitingForRoom() bool { return !p.admitted && p.set.ctx != nil }

func (p *part) currentStatus() Status {
	status := Status{State: p.state, Since: p.since, Err: p.err, Retry: p.agenda.retry, Objects: int(p.contents.count.Load())}
	if p.resolved {
		at := p.selection.target.Load()
		status.Resource, status.Kind = at.resource, at.kind
	}
	if p.isWaitingForRoom() {
		status.Err = ErrLimit
	}
	if forbidden, ok := errors.AsType[*ForbiddenError](p.err); ok {
		status.Missing = slices.Clone(forbidden.Missing)
	}
	return status
}

// readProblem returns the error that a read returns together with objects, or instead of them; nil if the part is
// Synced.
func (p *part) readProblem() error {
	switch {
	case p.state == Synced:
		return nil
	case p.err != nil:
		return p.err
	case p.isWaitingForRoom():
		return ErrLimit
	}
	return ErrNotSynced
}
