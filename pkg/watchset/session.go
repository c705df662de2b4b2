package watchset

import "sigs.k8s.io/controller-runtime/pkg/client"

// Session is one reconciliation of an owner. The leases that it acquires are the ones that the owner needs now.
type Session struct {
	set      *Set
	owner    Owner
	sequence uint64
}

// Session begins a session. Its Commit releases the leases that owner held before and did not acquire in this session.
// Without Commit, for example because the reconciliation failed, nothing is released. Once a later session of the owner
// exists, Commit of an earlier one does nothing.
func (s *Set) Session(owner Owner) *Session {
	x := &Session{set: s, owner: owner}
	s.lock.changeUnderLock(func() {
		x.sequence = s.owners.nextSessionNumber()
		s.owners.recordSession(owner, x.sequence)
	})
	return x
}

// Acquire is Set.Acquire for the session's owner, and notes that the lease is still needed.
func (x *Session) Acquire(r Request) (l *Lease, err error) {
	x.set.lock.changeUnderLock(func() {
		l, err = x.set.acquireUnderLock(x.owner, r, x.sequence)
		x.set.owners.recordSession(x.owner, x.sequence)
	})
	return l, err
}

// Commit ends the session: it releases the leases that the owner held before and did not acquire in it. It may be
// called more than once.
func (x *Session) Commit() {
	x.set.lock.changeUnderLock(func() {
		for _, l := range x.set.owners.leasesBeforeSession(x.owner, x.sequence) {
			l.releaseParts()
		}
	})
}

// Reader returns a client.Reader that reads through informers: a read starts the informer that it needs, and waits
// until the informer is Synced. Get leases the one object, List leases the namespace, or the cluster if none is given.
// Label selectors of a List are applied locally, and so is Limit; field selectors other than metadata.name, and
// Continue, return ErrInvalid. Results are copies. While an informer is Degraded, reads return a *DegradedError and no
// objects.
func (x *Session) Reader(o ...ReaderOption) client.Reader {
	r := &reader{session: x, timeout: defaultSyncTimeout}
	for _, option := range o {
		option(r)
	}
	return r
}
