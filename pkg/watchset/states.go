package watchset

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// stateQueue is the queue of one controller, in which the source of Set.States enqueues owners.
type stateQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// States returns a source. It enqueues each owner of this controller whose lease enters Synced, Forbidden, NotServed or
// Degraded, or did so before the source was started. A lease that is taken later may join an informer that is already
// in such a state. States enqueues no owner for it, because the lease has that state from the beginning.
func (s *Set) States(controller string) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		var err error
		s.lock.changeUnderLock(func() { err = (&stateQueue{queue}).startQueueing(ctx, s, controller) })
		return err
	})
}

// startQueueing has a controller's owners enqueued in q until ctx is done. It begins with those whose leases are in a
// settled state. The caller holds the Set's lock.
func (q *stateQueue) startQueueing(ctx context.Context, s *Set, controller string) error {
	if s.stopped {
		return ErrStopped
	}
	s.listeners.addStateQueue(controller, q)
	for _, p := range s.parts.all {
		for l := range p.demand.leases {
			if p.state.isSettled() && l.owner.Controller == controller {
				s.listeners.enqueueOwnerLater(l.owner, &s.lock)
			}
		}
	}
	context.AfterFunc(ctx, func() {
		s.lock.changeUnderLock(func() { s.listeners.dropStateQueue(controller, q) })
	})
	return nil
}
