package watchset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status returns the state of all the lease's informers together: Synced only if all are, else the worst state.
func (l *Lease) Status() (status Status) {
	l.set.lock.readUnderLock(func() { status = l.cover.combinedStatus() })
	return status
}

// StatusFor returns the state of the informer that shows a namespace. A namespace that the lease doesn't follow is
// Pending, or in an Auto lease has the state of the cluster-wide informer.
func (l *Lease) StatusFor(namespace string) (status Status) {
	l.set.lock.readUnderLock(func() { status = l.cover.statusInNamespace(namespace) })
	return status
}

// Wait blocks until none of the lease's informers is Syncing, or Pending for another reason than ErrLimit. It returns
// nil if all are Synced, and *PartialError if only some are. If none is, it returns *ForbiddenError, *NotServedError,
// *DegradedError or ErrLimit. After Release it returns ErrReleased, after the end of Start ErrStopped, and if ctx is
// done first ctx.Err().
func (l *Lease) Wait(ctx context.Context) error {
	for {
		var (
			changed <-chan struct{}
			err     error
		)
		l.set.lock.changeUnderLock(func() { changed, err = l.findUnsettledPart() })
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.set.ended:
			return ErrStopped
		}
	}
}

// findUnsettledPart returns a channel that is closed at the next change. If there is nothing to wait for, it returns
// nil and the error of all parts (see readErrorOf). The caller holds the Set's lock.
func (l *Lease) findUnsettledPart() (<-chan struct{}, error) {
	if err := l.closedError(); err != nil {
		return nil, err
	}
	parts, missing := l.cover.partsToReadFrom()
	wait := len(parts) == 0 && len(missing) == 0
	for _, p := range parts {
		wait = wait || !p.state.isSettled() && !p.isWaitingForRoom()
	}
	if !wait {
		return nil, readErrorOf(parts, missing)
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed, nil
}

// closedError returns ErrReleased or ErrStopped if nothing can be read any more, else nil.
func (l *Lease) closedError() error {
	switch {
	case l.released:
		return ErrReleased
	case l.set.stopped:
		return ErrStopped
	}
	return nil
}

// unreadableError returns why the lease's objects can't be read, nil if they can.
func (l *Lease) unreadableError() error {
	if l.key.sink != nil {
		return fmt.Errorf("%w: the lease passes its objects to its Sink, and keeps none to read", ErrInvalid)
	}
	return l.closedError()
}

// readErrorOf returns the error that a read of these parts returns with its objects. It is nil if all are Synced,
// *PartialError if some are, and the worst part's error if none is. It adds the parts' errors to missing.
func readErrorOf(parts []*part, missing map[string]error) error {
	if len(parts) == 0 && len(missing) == 0 {
		return ErrNotSynced
	}
	var worst *part
	synced := false
	for _, p := range parts {
		err := p.readProblem()
		if err == nil {
			synced = true
			continue
		}
		missing[p.selection.key.namespace] = err
		if worst == nil || severity[p.state] > severity[worst.state] {
			worst = p
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case synced:
		return &PartialError{Namespaces: missing}
	case worst != nil:
		return worst.readProblem()
	}
	return ErrLimit
}

// Get returns an object, which callers must not change: it is shared. If the object doesn't exist, apierrors.IsNotFound
// is true for the error. *DegradedError may come with the object as it was last known. Other errors are those of Wait,
// ErrNotSynced and ErrInvalid.
func (l *Lease) Get(key types.NamespacedName) (object client.Object, err error) {
	l.set.lock.readUnderLock(func() { object, err = l.findLeasedObject(key) })
	return object, err
}

// findLeasedObject is Get for a caller that holds the Set's lock.
func (l *Lease) findLeasedObject(key types.NamespacedName) (client.Object, error) {
	if err := l.unreadableError(); err != nil {
		return nil, err
	}
	p, err := l.cover.readablePart(key.Namespace)
	if err != nil {
		return nil, err
	}
	if l.cover.scope.kind == objectScope && l.cover.scope.name != key.Name {
		return nil, fmt.Errorf("%w: the lease is on the object %q, not on %q", ErrInvalid, l.cover.scope.name, key.Name)
	}
	problem := p.readProblem()
	if problem != nil && p.state != Degraded {
		return nil, problem
	}
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + key.Name
	}
	if object := p.contents.findStoredObject(name); object != nil {
		return object, problem
	}
	if problem != nil {
		return nil, problem
	}
	return nil, apierrors.NewNotFound(p.selection.targetResource().GroupResource(), key.Name)
}

// List returns the objects of a namespace that match sel; "" stands for all namespaces that the lease follows, and a
// nil sel matches everything. The objects are shared: callers must not change them. Where some namespaces can't be
// seen, it returns the objects of the others and a *PartialError; a *DegradedError comes with the objects as they were
// seen last.
func (l *Lease) List(namespace string, sel labels.Selector) (found []client.Object, err error) {
	l.set.lock.readUnderLock(func() { found, err = l.findLeasedObjects(namespace, sel) })
	return found, err
}

// findLeasedObjects is List for a caller that holds the Set's lock.
func (l *Lease) findLeasedObjects(namespace string, sel labels.Selector) ([]client.Object, error) {
	if err := l.unreadableError(); err != nil {
		return nil, err
	}
	parts, missing := l.cover.partsToReadFrom()
	if namespace != "" {
		p, err := l.cover.readablePart(namespace)
		if err != nil {
			return nil, err
		}
		parts, missing = []*part{p}, map[string]error{}
	}
	var found []client.Object
	for _, p := range parts {
		if p.hasCompleteStore() {
			found = append(found, p.contents.selectStoredObjects(namespace, sel, p.selection.key.kind == clusterScope)...)
		}
	}
	return found, readErrorOf(parts, missing)
}
