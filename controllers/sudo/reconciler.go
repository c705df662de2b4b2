// Package sudo grants and ends sudo on request, as internal/sudo decides. A pass reads everything live, carries out one write, and begins
// anew: so a pass that follows a crash is like any other.
package sudo

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/pause"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/sudo"
	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Options are what a Reconciler needs of its surroundings.
type Options struct {
	Informers   *watchset.Set
	Events      record.EventRecorder
	Limits      sudo.Limits
	Concurrency int
	// Served is called once the API server serves SudoRequests.
	Served func(context.Context)
}

// Reconciler grants and ends the right of one SudoRequest. A request names it, or names a grant in SudoNamespace whose SudoRequest is
// gone.
type Reconciler struct {
	Options
	client client.Client // without a cache
	clock  clock
	known  *known
	again  requeue.Source[reconcile.Request]
	// served is closed when the CRD of component requests exists, by isServed.
	served   chan struct{}
	isServed func()
	// begun is closed when this replica leads and has ended what ended while no operator ran.
	begun chan struct{}
}

// New returns a Reconciler.
func New(o Options) *Reconciler {
	served := make(chan struct{})
	return &Reconciler{Options: o, known: newKnown(), begun: make(chan struct{}), served: served,
		isServed: sync.OnceFunc(func() { close(served) })}
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) (err error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.Wrap(r.clock.wrapTransport)
	if r.client, err = client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return fmt.Errorf("making the client of sudo on request: %w", err)
	}
	if err := metrics.Registry.Register(prometheus.Collector(gauges{r.known})); err != nil {
		return err
	}
	if err := mgr.Add(copying.EveryReplica(r.runWatches)); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(r.takeOver)); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("sudo").
		Watches(&v1alpha1.LNamespace{}, handler.EnqueueRequestsFromMapFunc(r.listConcerned),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(&r.again).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency, RateLimiter: apianswer.RetryAfterOutage()}).
		Complete(requeue.After(r.begun, apianswer.Patiently(r)))
	if err != nil {
		return fmt.Errorf("setting up the controller of sudo on request: %w", err)
	}
	return nil
}

// listConcerned returns the requests of a tenant whose lists have changed.
func (r *Reconciler) listConcerned(_ context.Context, tenant client.Object) (requests []reconcile.Request) {
	for _, place := range r.known.listRequests(tenant.GetName()) {
		requests = append(requests, reconcile.Request{NamespacedName: place})
	}
	return requests
}

// mostSteps bounds the steps of one pass: those of a whole grant.
const mostSteps = 8

// longestRefusal is how much of a refusal of the timer a condition repeats, in bytes.
const longestRefusal = 1024

// Reconcile carries out the steps of one request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Namespace == v1alpha1.SudoNamespace {
		return ctrl.Result{}, r.endLost(ctx, types.UID(req.Name))
	}
	refused := ""
	for range mostSteps {
		f, err := r.gatherFacts(ctx, req.NamespacedName)
		if err != nil || f == nil {
			return ctrl.Result{}, err
		}
		f.TimerRefused = refused
		step := sudo.Next(f)
		if step.Act == sudo.Nothing {
			return ctrl.Result{RequeueAfter: step.After}, nil
		}
		switch err := r.act(ctx, f, step); {
		case err == nil, isOvertaken(err):
		case step.Act == sudo.CreateTimer && apianswer.IsRefusal(err): // such as by a policy of the cluster: the next step reports it
			refused = text.Cut(err.Error(), longestRefusal)
		default:
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: waitPause}, nil
}

// isOvertaken reports that the facts were no longer true: they are gathered again.
func isOvertaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// takeOver ends, before anything else is written, what ended while no operator ran.
func (r *Reconciler) takeOver(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.served:
	}
	for !r.known.isComplete() {
		if pause.For(ctx, waitPause) != nil {
			return nil
		}
	}
	for _, place := range r.known.listGrants() {
		if err := r.endFirst(ctx, place); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "ending sudo on request at the start", "request", place.String())
		}
	}
	close(r.begun)
	// Whatever was queued before the watches had shown all.
	r.queue(r.known.listGrants()...)
	return nil
}

// endFirst takes a right away that has ended. Its report follows.
func (r *Reconciler) endFirst(ctx context.Context, place types.NamespacedName) error {
	if place.Namespace == v1alpha1.SudoNamespace {
		return r.endLost(ctx, types.UID(place.Name))
	}
	for range mostSteps {
		f, err := r.gatherFacts(ctx, place)
		if err != nil || f == nil || !sudo.IsEnding(f) {
			return err
		}
		if err := r.act(ctx, f, sudo.Next(f)); err != nil && !isOvertaken(err) {
			return err
		}
	}
	return nil
}
