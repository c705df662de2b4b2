package watchset

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// part is one list and watch, shared by all leases with an equal key. The Set's lock guards its fields; the store has a lock of
// its own, and is written under the Set's lock or, event by event, by the run alone.
type part struct {
	set      *Set
	key      partKey
	request  Request
	observer func(change, ...client.Object) // gets what is seen, in place of store and feeds: for what the Set watches for itself

	leases      map[*Lease]bool // true: its owner wasn't told of any state yet
	controllers map[string]int  // of the leases
	needed      bool            // by the Set itself
	admitted    bool
	gone        bool

	state    State
	since    time.Time
	err      error
	settled  State // the last state that owners were told of
	attempts int   // to come back, since the last loss
	lastSync time.Time
	cause    error // the last trouble
	global   bool  // discovery said that the resource is cluster-scoped
	agenda   agenda

	store   cache.Indexer
	objects atomic.Int64 // in the store
	run     *run         // nil unless the server is followed
	// known is what feeds were told of while other parts of an Auto lease showed it.
	known map[*feed]map[string]client.Object
}

func (s *Set) newPart(key partKey, r Request) *part {
	indexers := cache.Indexers{}
	if key.kind == clusterScope {
		indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	}
	r.Scope = Scope{kind: key.kind, namespace: key.namespace, name: key.name}
	return &part{
		set: s, key: key, request: r, leases: map[*Lease]bool{}, controllers: map[string]int{},
		state: Pending, since: time.Now(), store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers),
	}
}

// own says whether the part is one of the Set's own.
func (p *part) own() bool { return p.observer != nil }

func (p *part) idle() bool { return len(p.leases) == 0 && !p.needed }

// sees says whether the store means something: all there is, or all that was there.
func (p *part) sees() bool { return p.state == Synced || p.state == Degraded }

// begin follows the server. It asks for no right: the first request shows it.
func (p *part) begin() {
	if !p.set.live() || p.run != nil {
		return
	}
	p.agenda.retry = time.Time{}
	p.set.watchRBAC()
	p.run = newRun(p)
	p.set.running.Go(p.run.follow)
}

// halt closes the stream.
func (p *part) halt() {
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

// close ends a part that nobody leases, and makes room for another.
func (p *part) close() {
	if p.gone {
		return
	}
	p.halt()
	if p.own() {
		return
	}
	p.count(p.state, "")
	delete(p.set.parts, p.key)
	p.set.metrics.forget(p)
	if p.admitted {
		p.set.admitted--
		p.set.admit()
	}
}

// enter changes the state, and tells whoever waits for that.
func (p *part) enter(state State, err error) {
	from, changed := p.state, p.state != state
	p.state, p.err = state, err
	if changed {
		p.since = time.Now()
		p.count(from, state)
	}
	for l := range p.leases {
		l.wake()
	}
	if !state.settled() {
		return
	}
	news := state != p.settled
	if news {
		p.told(p.settled)
		p.settled = state
	}
	for l, waits := range p.leases {
		if news || waits {
			p.leases[l] = false
			p.set.tell(l.owner)
		}
	}
}

// count keeps the counters of states.
func (p *part) count(from, to State) {
	if p.own() {
		return
	}
	if to != "" {
		p.set.metrics.transition(p, from, to)
	}
	if (from == NotServed) == (to == NotServed) {
		return
	}
	if to == NotServed {
		p.set.unserved++
	} else {
		p.set.unserved--
	}
	p.set.needCRDs()
}

// told writes the one line that a change is worth.
func (p *part) told(before State) {
	log := p.set.log
	if p.own() {
		log = log.V(1)
	}
	values := []any{"resource", p.key.resource.String(), "scope", p.request.Scope.String(), "namespace", p.key.namespace,
		"from", string(before), "to", string(p.state)}
	if p.err != nil {
		values = append(values, "reason", p.err.Error())
	}
	log.Info("informer changed its state", values...)
}

// lose closes the stream and empties the store, without events: nobody knows what is there now. It comes back by the back-off,
// or sooner when something hints at it.
func (p *part) lose(state State, err error) {
	p.endRun()
	memory := p.remember(state)
	p.fill(nil)
	p.known = nil
	p.agenda.verify, p.agenda.degrade = time.Time{}, time.Time{}
	p.agenda.retry = time.Now().Add(p.set.options.Backoff.delay(p.attempts))
	p.attempts++
	p.enter(state, err)
	p.agenda.arm(p)
	for l := range p.leases {
		l.partLost(p, memory)
	}
}

// remember drops what feeds were not told yet, and returns what they were told of: an Auto lease that goes from the cluster to
// its namespaces tells the differences only.
func (p *part) remember(state State) map[*feed]map[string]client.Object {
	memory := map[*feed]map[string]client.Object{}
	for f := range p.feeds() {
		unseen := f.drop(p)
		if state != Forbidden || !p.autoLeased(f.controller) {
			continue
		}
		told := p.contents()
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

func (p *part) autoLeased(controller string) bool {
	if p.key.kind != clusterScope {
		return false
	}
	for l := range p.leases {
		if l.scope.kind == autoScope && l.owner.Controller == controller {
			return true
		}
	}
	return false
}

// settle makes the part Synced: all is there, and a watch is open.
func (p *part) settle() {
	p.agenda.degrade, p.cause = time.Time{}, nil
	if p.state == Synced {
		return
	}
	p.attempts = 0
	if every := *p.set.options.VerifyInterval; every > 0 && !p.own() {
		p.agenda.verify = time.Now().Add(jitter(every))
	}
	p.agenda.arm(p)
	p.enter(Synced, nil)
	for l := range p.leases {
		l.partSynced(p)
	}
}

// degrade gives up pretending that the watch works. What was last known stays.
func (p *part) degrade() {
	if p.run == nil || p.run.working() {
		return
	}
	p.run.freeSlot() // whoever hangs must not keep others from starting
	p.enter(Degraded, p.degraded())
}

func (p *part) degraded() *DegradedError {
	cause := p.cause
	if cause == nil {
		cause = errors.New("the server doesn't answer")
	}
	return &DegradedError{Resource: p.key.resource, Namespace: p.key.namespace, LastSync: p.lastSync, Cause: cause}
}

func (p *part) forbidden(missing []string, cause error) *ForbiddenError {
	slices.Sort(missing)
	return &ForbiddenError{Resource: p.key.resource, Namespace: p.key.namespace, Name: p.key.name, Missing: slices.Compact(missing), Cause: cause}
}

// limited says whether the part waits for room.
func (p *part) limited() bool { return !p.admitted && p.set.ctx != nil }

func (p *part) status() Status {
	status := Status{State: p.state, Since: p.since, Err: p.err, Retry: p.agenda.retry, Objects: int(p.objects.Load())}
	if p.limited() {
		status.Err = ErrLimit
	}
	var forbidden *ForbiddenError
	if errors.As(p.err, &forbidden) {
		status.Missing = slices.Clone(forbidden.Missing)
	}
	return status
}

// problem is what a read gets beside, or in place of, objects.
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
