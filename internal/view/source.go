package view

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source returns a controller's source. requests returns what a change makes that controller reconcile.
func (v *View) Source(requests func(Change) []reconcile.Request) source.Source {
	return &subscription{view: v, requests: requests}
}

// subscription hands the changes of a view to one controller.
type subscription struct {
	view     *View
	requests func(Change) []reconcile.Request
}

// Start implements source.Source.
func (s *subscription) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.view.Subscribe(func(c Change) {
		for _, request := range s.requests(c) {
			queue.Add(request)
		}
	})
	return nil
}

// WaitForSync implements source.SyncingSource: no controller reconciles against half a forest.
func (s *subscription) WaitForSync(ctx context.Context) error { return s.view.WaitForSync(ctx) }
