package view

import (
	"cmp"
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/warren-tenancy/warren/internal/fairqueue"
)

// Source returns a source of events for a controller. requests returns the requests that the controller reconciles
// because of a change.
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

// String names the source in errors of controller-runtime, which would else print the whole forest while it changes.
func (s *subscription) String() string { return "view of the forest" }

// Queue returns a function that makes the queue of a controller. Tenants take turns in it: a tenant with very many
// requests delays each request of another tenant by the time of only one request. namespaceOf returns the namespace
// that a request is about. The tenant of the request is the root of the tree around that namespace or, outside of every
// tree, the namespace itself. hurried, unless it is nil, reports whether a request goes before all others of its
// tenant.
func (v *View) Queue(namespaceOf func(reconcile.Request) string,
	hurried func(reconcile.Request) bool) func(string,
	workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	attributesOf := func(r reconcile.Request) fairqueue.Attributes {
		namespace, class := namespaceOf(r), 1
		if hurried != nil && hurried(r) {
			class = 0
		}
		return fairqueue.Attributes{Tenant: cmp.Or(v.Snapshot().RootOf(namespace), namespace), Class: class}
	}
	return func(controller string,
		limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		inTurns := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: controller,
			Queue: fairqueue.ForWorkqueue(attributesOf)})
		return endsAtOnce{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: controller,
				Queue: inTurns}),
		})}
	}
}

// endsAtOnce is a queue that hands out nothing once it has been shut down. A queue of client-go would first hand out
// all requests that wait. By then, their reconciliation can only fail, and the leader would give its Lease back only
// after them.
type endsAtOnce struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Get implements workqueue.TypedInterface.
func (q endsAtOnce) Get() (r reconcile.Request, shutdown bool) {
	r, shutdown = q.TypedRateLimitingInterface.Get()
	return r, shutdown || q.ShuttingDown()
}

// InNamespace returns the namespace of the object that a request names.
func InNamespace(r reconcile.Request) string { return r.Namespace }

// Named returns the name in a request: it is the name of a namespace.
func Named(r reconcile.Request) string { return r.Name }
