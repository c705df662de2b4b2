// Package sudo grants and ends sudo on request, as internal/sudo decides. A pass reads everything live, carries out one write, and begins
// anew: so a pass that follows a crash is like any other.
package sudo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/sudo"
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

// first is reconciled when the controller begins: all that watches had shown before was not queued.
var first = reconcile.Request{}

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
		isServed: sync.OnceFunc(func() { close(served) }), again: requeue.Source[reconcile.Request]{First: []reconcile.Request{first}}}
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

// Reconcile carries out the steps of one request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req == first {
		r.queue(r.known.listAll()...)
		return ctrl.Result{}, nil
	}
	if req.Namespace == v1alpha1.SudoNamespace {
		return ctrl.Result{}, r.endLost(ctx, types.UID(req.Name))
	}
	for range mostSteps {
		f, err := r.gatherFacts(ctx, req.NamespacedName)
		if err != nil || f == nil {
			return ctrl.Result{}, err
		}
		step := sudo.Next(f)
		if step.Act == sudo.Nothing {
			return ctrl.Result{RequeueAfter: step.After}, nil
		}
		err = r.act(ctx, f, step)
		if step.Act.Gives() && isRefused(err) {
			return r.reportRefused(ctx, f, step.Act, err)
		}
		if err != nil && !isOvertaken(err) {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: waitPause}, nil
}

// isRefused reports that the API server will refuse a write until somebody changes something: a policy, or the namespace.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err)
}

// reportRefused says in the status why nothing is granted.
func (r *Reconciler) reportRefused(ctx context.Context, f *sudo.Facts, act sudo.Act, refusal error) (ctrl.Result, error) {
	step := sudo.ReportRefused(f, act, describeRefusal(refusal))
	if err := r.act(ctx, f, step); err != nil && !isOvertaken(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: step.After}, nil
}

// describeRefusal returns the message of the API server.
func describeRefusal(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
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
	for !r.known.isSettled() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(waitPause):
		}
	}
	for _, place := range r.known.listGrants() {
		if err := r.endFirst(ctx, place); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "ending sudo on request at the start", "request", place.String())
		}
	}
	close(r.begun)
	return nil
}

// endFirst takes a right away that has ended. Its report follows.
func (r *Reconciler) endFirst(ctx context.Context, place types.NamespacedName) error {
	if place.Namespace == v1alpha1.SudoNamespace {
		return r.endLost(ctx, types.UID(place.Name))
	}
	for range mostSteps {
		f, err := r.gatherFacts(ctx, place)
		if err != nil || f == nil {
			return err
		}
		step := sudo.Next(f)
		if !step.Act.TakesAway() {
			return nil
		}
		if err := r.act(ctx, f, step); err != nil && !isOvertaken(err) {
			return err
		}
	}
	return nil
}
