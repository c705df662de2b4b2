package watchset

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lease is an owner's claim on what its Request asks for. Leases share informers, and an informer lives while some
// lease needs it.
type Lease struct {
	set   *Set
	owner Owner
	key   requestKey

	// The Set's lock guards these.
	request  Request
	cover    coverage
	released bool
	touched  uint64        // the sequence number of the session, or call of Set.Acquire, that acquired it last
	changed  chan struct{} // closed at the next change; nil unless a call of Wait blocks
}

// acquireUnderLock is Acquire for a caller that holds the Set's lock. sequence is the number of the session, or of the
// call of Set.Acquire.
func (s *Set) acquireUnderLock(owner Owner, r Request, sequence uint64) (*Lease, error) {
	if s.stopped {
		return nil, ErrStopped
	}
	key, err := r.validatedKey()
	if err != nil {
		return nil, err
	}
	held := s.owners.holdingsOfOwner(owner)
	l := held.leases[key]
	if l == nil {
		l = &Lease{set: s, owner: owner, key: key, request: r, cover: coverage{scope: r.Scope, parts: map[place]*part{}}}
		held.leases[key] = l
		if l.cover.scope.set != nil {
			l.cover.scope.set.addFollower(l)
		}
		l.arrangeNeededParts(nil)
	}
	l.touched = max(l.touched, sequence)
	return l, nil
}

// Release releases the lease. Informers that other leases need live on; the others end after IdleGrace. Release may be
// called more than once. Later reads return ErrReleased.
func (l *Lease) Release() {
	l.set.lock.changeUnderLock(l.releaseParts)
}

func (l *Lease) releaseParts() {
	if l.released {
		return
	}
	l.released = true
	l.set.owners.removeHeldLease(l)
	if l.cover.scope.set != nil {
		l.cover.scope.set.removeFollower(l)
	}
	for _, p := range l.cover.parts {
		l.detachPart(p)
		p.closeUnneededAfter(l.closingGrace())
	}
	l.wakeWaitingCalls()
}

// closingGrace returns how long the informers of a lease outlive it: IdleGrace, or 0 if the request has a Sink. No
// other lease could use the informers of a Sink.
func (l *Lease) closingGrace() time.Duration {
	if l.key.sink != nil {
		return 0
	}
	return *l.set.options.IdleGrace
}

// arrangeNeededParts attaches the parts that the lease's scope needs now, and detaches all others. told holds the
// objects that feeds got from a cluster-wide part that became Forbidden, by namespace/name; nil if there was none.
func (l *Lease) arrangeNeededParts(told map[*feed]map[string]client.Object) {
	waited := l.cover.waiting
	want, stays, renewed := l.cover.chooseNeededPlaces(l.set.options.MaxNamespaces), map[place]bool{}, map[string]bool{}
	for _, at := range want {
		stays[at], renewed[at.namespace] = true, true
	}
	var left []*part
	for at, p := range l.cover.parts {
		if stays[at] {
			continue
		}
		switch {
		case l.cover.scope.kind == autoScope && !l.cover.down:
			l.movePendingEvents(p, l.cover.parts[place{}])
		case renewed[at.namespace]: // the namespace was made anew: its UID changed
			l.queueDeletionsOf(p)
		}
		l.detachPart(p)
		left = append(left, p)
	}
	for _, at := range want {
		if l.cover.parts[at] == nil {
			l.attachPart(at, told)
		}
	}
	for _, p := range left {
		p.closeUnneededAfter(0)
	}
	l.reportWaitingPlaces(waited, renewed)
	l.wakeWaitingCalls()
	if cluster := l.cover.parts[place{}]; cluster != nil {
		l.splitClusterWidePart(cluster, nil) // the part may be shared, and Forbidden since before this lease
	}
}

func (l *Lease) attachPart(at place, told map[*feed]map[string]client.Object) {
	s, key := l.set, partKey{l.key.view, at}
	p := s.parts.all[key]
	if p == nil {
		p = s.newPart(key, l.request)
		s.parts.addPart(p)
		if s.hasRoomForPart() {
			s.parts.recordAdmission(p)
			p.beginListAndWatch()
		}
		if !p.admitted {
			p.reportStateToSink()
		}
	}
	l.cover.parts[at] = p
	// A part that was about to be closed for lack of leases is needed again.
	p.agenda.expire = time.Time{}
	if first := p.demand.addLease(l, !p.state.isSettled()); !first {
		return // another lease of the controller holds the part, so its feeds got the objects already
	}
	for f := range p.feedsOfPart() {
		if f.controller != l.owner.Controller {
			continue
		}
		p.contents.recordAlreadySent(f, told[f], p.selection.key.namespace)
		if p.hasCompleteStore() && (p.state == Synced || p.contents.count.Load() > 0) { // else it may be Degraded before its first list
			f.queueDifferences(p, compareStores(p.contents.known[f], p.contents.store))
			delete(p.contents.known, f)
		}
	}
}

func (l *Lease) detachPart(p *part) {
	delete(l.cover.parts, p.selection.key.place)
	for f := range p.feedsOfPart() {
		if f.controller == l.owner.Controller && p.demand.isLastOfController(l) {
			f.dropPendingOf(p)
			delete(p.contents.known, f)
		}
	}
	p.demand.removeLease(l)
}

// movePendingEvents moves the pending events of this controller's feeds from p to heir, the part that takes p's place.
// It moves nothing if heir is nil, or if another lease of the controller holds p.
func (l *Lease) movePendingEvents(p, heir *part) {
	for f := range p.feedsOfPart() {
		if f.controller == l.owner.Controller && p.demand.isLastOfController(l) && heir != nil {
			f.movePendingEntries(p, heir)
		}
	}
}

// queueDeletionsOf queues deletions of all objects of a part whose namespace was deleted.
func (l *Lease) queueDeletionsOf(p *part) {
	for f := range p.feedsOfPart() {
		if f.controller != l.owner.Controller || !p.demand.isLastOfController(l) {
			continue
		}
		for key, object := range p.contents.objectsByName() {
			f.queueChange(p, key, object, nil, true)
		}
	}
}

// splitClusterWidePart makes an Auto lease change from its cluster-wide part p to one part per namespace, if p is
// Forbidden and its resource is namespaced.
func (l *Lease) splitClusterWidePart(p *part, told map[*feed]map[string]client.Object) {
	// A cluster-scoped resource has no namespaces to fall back to.
	if l.cover.isClusterWidePart(p) && p.state == Forbidden && !l.cover.down && !p.global {
		l.cover.down = true
		l.arrangeNeededParts(told)
	}
}

// rejoinClusterWidePart makes an Auto lease change back from parts of namespaces to its cluster-wide part p.
func (l *Lease) rejoinClusterWidePart(p *part) {
	if l.cover.isClusterWidePart(p) && l.cover.down {
		l.cover.down = false
		l.arrangeNeededParts(nil)
	}
}

// wakeWaitingCalls wakes all calls of Wait.
func (l *Lease) wakeWaitingCalls() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
