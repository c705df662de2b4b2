package watchset

import (
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// part is one informer: a list and watch with the store that it fills, shared by all leases with an equal key. The Set's lock guards
// its fields, but for the selection.
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
	settled  State // the last state that owners were told of
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
	p.selection.target.Store(s.firstTarget(key.view))
	p.contents.store = p.selection.newStore(nil)
	return p
}

// sees says whether the store is complete: with all objects that exist (Synced), or that existed while the watch worked (Degraded).
func (p *part) sees() bool { return p.state == Synced || p.state == Degraded }

// beginRun starts to list and watch, if the Set runs and the part doesn't. It reviews no rights, because the first request shows a
// missing one.
func (p *part) beginRun() {
	if !p.set.isLive() || p.run != nil {
		return
	}
	p.agenda.retry = time.Time{}
	p.set.own.watchRBAC()
	p.run = newRun(p)
	p.set.running.Go(p.run.follow)
}

// haltStream ends the part for good: its run and its timer.
func (p *part) haltStream() {
	p.gone = true
	p.agenda.stop()
	p.endRun()
}

func (p *part) endRun() {
	if p.run != nil {
		p.run.end()
		p.run = nil
	}
}

// closePart ends a part that no lease needs, and lets another part begin in its place.
func (p *part) closePart() {
	if p.gone {
		return
	}
	p.haltStream()
	if p.selection.isOwn() {
		return
	}
	p.count(p.state, "")
	if p.selection.key.sink != nil {
		p.selection.key.sink.State(p.selection.key.namespace, Status{State: Pending})
	}
	p.set.parts.remove(p)
	p.set.metrics.forget(p)
	if p.admitted {
		p.set.parts.admitted--
		p.set.admitParts()
	}
}

// enterState changes the state, wakes calls of Wait, and enqueues owners where the state is settled and new to them.
func (p *part) enterState(state State, err error) {
	from, changed := p.state, p.state != state
	p.state, p.err = state, err
	if changed {
		p.since = time.Now()
		p.count(from, state)
	}
	p.tellState()
	for l := range p.demand.leases {
		l.wakeWaiters()
	}
	if !state.settled() {
		return
	}
	news := state != p.settled
	if news {
		p.logChange(p.settled)
		p.settled = state
	}
	for l, waits := range p.demand.leases {
		if news || waits {
			p.demand.leases[l] = false
			p.set.listeners.tellOwner(l.owner, &p.set.lock)
		}
	}
}

// count updates the metric of transitions and the numbers of parts by state. to is "" for a part that is closed.
func (p *part) count(from, to State) {
	if p.selection.isOwn() {
		return
	}
	if to != "" {
		p.set.metrics.transition(p, from, to)
	}
	p.set.own.countState(from, to)
}

// logChange writes one log line for a change of the state; for the Set's own parts at verbosity 1.
func (p *part) logChange(before State) {
	log := p.set.log
	if p.selection.isOwn() {
		log = log.V(1)
	}
	values := []any{"resource", p.selection.resource().String(), "scope", p.selection.request.Scope.String(), "namespace", p.selection.key.namespace,
		"from", string(before), "to", string(p.state)}
	if p.err != nil {
		values = append(values, "reason", p.err.Error())
	}
	log.Info("informer changed its state", values...)
}

// loseStore ends the run and empties the store, without events of deletion: the objects may still exist. The part begins again
// after a review, which the back-off or a hint causes.
func (p *part) loseStore(state State, err error) {
	p.endRun()
	memory := p.remember(state)
	p.contents.replaceStore(p.selection.newStore(nil))
	p.contents.known = nil
	p.resolved = p.resolved && (state != NotServed || !p.selection.byKind())
	p.agenda.verify, p.agenda.degrade = time.Time{}, time.Time{}
	p.agenda.retry = time.Now().Add(p.set.options.Backoff.delayAfter(p.attempts))
	p.attempts++
	p.enterState(state, err)
	p.agenda.armTimer(p)
	for l := range p.demand.leases {
		l.partLost(p, memory)
	}
}

// remember drops the pending events of feeds, and returns the objects that each feed got before. With these an Auto lease that
// changes from the cluster to its namespaces passes on the differences only.
func (p *part) remember(state State) map[*feed]map[string]client.Object {
	memory := map[*feed]map[string]client.Object{}
	for f := range p.feeds() {
		unseen := f.drop(p)
		if state != Forbidden || !p.demand.autoLeased(p, f.controller) {
			continue
		}
		told := p.contents.byName()
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

// settlePart makes the part Synced. The caller knows that the store is complete and a watch is open.
func (p *part) settlePart() {
	p.agenda.degrade, p.cause = time.Time{}, nil
	if p.state == Synced {
		return
	}
	p.attempts = 0
	if !p.selection.isOwn() {
		p.agenda.verify = p.set.options.nextCheck()
	}
	p.agenda.armTimer(p)
	p.enterState(Synced, nil)
	for l := range p.demand.leases {
		l.partSynced(p)
	}
}

// degradePart makes the part Degraded unless its watch works again. The store keeps its objects.
func (p *part) degradePart() {
	if p.run == nil || p.run.working() {
		return
	}
	p.run.freeSlot() // a list that hangs must not keep other parts from starting
	if p.state != Degraded {
		p.enterState(Degraded, p.degraded())
	}
}

func (p *part) degraded() *DegradedError {
	cause := p.cause
	if cause == nil {
		cause = errors.New("the server doesn't answer")
	}
	return &DegradedError{Resource: p.selection.resource(), Namespace: p.selection.key.namespace, LastSync: p.lastSync, Cause: cause}
}

// updateErr replaces the error of a state that goes on, and tells the Sink if the error says something else than before.
func (p *part) updateErr(err error) {
	news := p.err == nil || p.err.Error() != err.Error()
	if p.err = err; news {
		p.tellState()
	}
}

// limited says whether the part waits because MaxInformers others run.
func (p *part) limited() bool { return !p.admitted && p.set.ctx != nil }

func (p *part) status() Status {
	status := Status{State: p.state, Since: p.since, Err: p.err, Retry: p.agenda.retry, Objects: int(p.contents.count.Load())}
	if p.resolved {
		at := p.selection.target.Load()
		status.Resource, status.Kind = at.resource, at.kind
	}
	if p.limited() {
		status.Err = ErrLimit
	}
	if forbidden, ok := errors.AsType[*ForbiddenError](p.err); ok {
		status.Missing = slices.Clone(forbidden.Missing)
	}
	return status
}

// problem returns the error that a read returns beside, or in place of, objects; nil if the part is Synced.
func (p *part) problem() error {
	switch {
	case p.state == Synced:
		return nil
	case p.err != nil:
		return p.err
	case p.limited():
		return ErrLimit
	}
	return ErrNotSynced
}
