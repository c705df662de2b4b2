package watchset

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type stateQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// States enqueues each owner of this controller whose lease entered Synced, Forbidden, NotServed or Degraded, or did so before the
// source was started. A new lease on an informer that is in such a state already enqueues nobody, because the lease has that state
// from the beginning.
func (s *Set) States(controller string) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		var err error
		s.lock.change(func() { err = s.startStates(ctx, controller, &stateQueue{queue}) })
		return err
	})
}

// startStates enqueues owners from now on until ctx is done, and at once those whose leases are in a settled state.
func (s *Set) startStates(ctx context.Context, controller string, q *stateQueue) error {
	if s.stopped {
		return ErrStopped
	}
	s.states[controller] = append(s.states[controller], q)
	for _, p := range s.parts {
		for l := range p.leases {
			if p.state.settled() && l.owner.Controller == controller {
				s.tellOwner(l.owner)
			}
		}
	}
	context.AfterFunc(ctx, func() {
		s.lock.change(func() {
			s.states[controller] = slices.DeleteFunc(s.states[controller], func(other *stateQueue) bool { return other == q })
		})
	})
	return nil
}

// tellOwner enqueues an owner once the lock is free.
func (s *Set) tellOwner(owner Owner) {
	for _, q := range s.states[owner.Controller] {
		s.lock.putOff(func() { q.Add(reconcile.Request{NamespacedName: owner.NamespacedName}) })
	}
}
