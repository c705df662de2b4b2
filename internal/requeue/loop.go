package requeue

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

// Loop is a controller of something that exists once. It calls Look when it starts, when a source or Now asks for it, and again after the
// time that the last call returned. No two calls run at the same time.
type Loop struct {
	Name string
	// Look does the work, and returns the time until the next call.
	Look func(context.Context) (again time.Duration, err error)
	// RetryMin and RetryMax bound the back-off after a call of Look that failed. But after a lost race (409), and after an answer that
	// asks to wait (429, Retry-After), apianswer.Patiently chooses the time.
	RetryMin, RetryMax time.Duration
	// EveryReplica makes every replica call Look, and not only the leader.
	EveryReplica bool

	asked Source[reconcile.Request]
}

// SetupWithManager runs the loop with mgr. Every request from sources makes it call Look.
func (l *Loop) SetupWithManager(mgr ctrl.Manager, sources ...source.Source) error {
	l.asked.First = []reconcile.Request{{}}
	b := ctrl.NewControllerManagedBy(mgr).Named(l.Name).WatchesRawSource(&l.asked).WithOptions(controller.Options{
		NeedLeaderElection: new(!l.EveryReplica),
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](l.RetryMin, l.RetryMax),
	})
	for _, s := range sources {
		b = b.WatchesRawSource(s)
	}
	return b.Complete(apianswer.Patiently(l))
}

// Changes is a source that makes a loop call Look whenever an object of this type changes in the cache.
func Changes(objects cache.Cache, of client.Object) source.Source {
	return source.Kind(objects, of, handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	}))
}

// Now makes the loop call Look as soon as possible.
func (l *Loop) Now() { l.asked.Add(reconcile.Request{}) }

// Reconcile implements reconcile.Reconciler.
func (l *Loop) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	again, err := l.Look(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}
