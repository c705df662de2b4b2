// Package subnamespace creates and deletes the namespaces of SubNamespaces; package hierarchy keeps their labels and
// annotations.
//
// Each tree has limits (of the number of its sub-namespaces, and of its depth). A SubNamespace that such a limit holds
// back waits in line: when a place in the tree is free, the oldest one gets it.
package subnamespace

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/finalizers"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/namespaces"
	"github.com/warren-tenancy/warren/internal/newest"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
)

// Reconciler brings the namespace of one SubNamespace to what it should be.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live       client.Reader
	Namespaces *namespaces.Writer
	View       *view.View
	Events     record.EventRecorder
	// Rejected returns the API server's message if it refused the keys of a namespace, or "":
	// hierarchy.Reconciler.Rejected.
	Rejected    func(namespace string) string
	Concurrency int
	// RetryMax caps the back-off after the API server refused to create a namespace.
	RetryMax time.Duration
	// After is closed when the reconciler may begin; nil if it always may. The operator sets it to
	// access.Reconciler.Revoked.
	After <-chan struct{}

	line    requeue.Source[reconcile.Request] // requeues those that wait in line
	refused apianswer.Refusals                // by parent/name: why the namespace could not be created
	known   newest.Known

	waiting *waitingSubNamespaces
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.resetState()
	if err := metrics.Registry.Register(population{r.Client}); err != nil {
		return err
	}
	patient := apianswer.Patiently(requeue.After(r.After, r))
	return ctrl.NewControllerManagedBy(mgr).
		Named("subnamespace").
		For(&v1alpha1.SubNamespace{}, builder.WithPredicates(apianswer.Hastening(patient))).
		WatchesRawSource(r.View.Source(r.concernedSubs)).
		WatchesRawSource(&r.line).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency, RateLimiter: apianswer.RetryAfterOutage(),
			NewQueue: r.View.Queue(view.InNamespace, nil)}).
		Complete(patient)
}

// resetState empties what the reconciler remembers.
func (r *Reconciler) resetState() {
	r.waiting = newWaitingSubNamespaces(r.View.Snapshot)
}

// Reconcile brings one SubNamespace and its namespace to what they should be, and reports.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	sub := &v1alpha1.SubNamespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, sub); err != nil {
		if apierrors.IsNotFound(err) {
			r.leaveLine(req.NamespacedName)
			r.refused.Clear(req.String())
			r.known.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.known.IsOutdated(sub) {
		return ctrl.Result{}, nil // the cache will bring our last write, and requeue the SubNamespace
	}
	if !sub.DeletionTimestamp.IsZero() {
		r.leaveLine(req.NamespacedName)
		return r.finalize(ctx, sub)
	}
	if r.View.Snapshot().Namespace(sub.Namespace) == nil {
		return ctrl.Result{}, nil // the watch of Namespaces is behind: it will bring the namespace, and requeue the SubNamespace
	}
	// Before the namespace is created: a SubNamespace without the finalizer could be deleted and leave the namespace
	// behind.
	if !controllerutil.ContainsFinalizer(sub, v1alpha1.FinalizerSubNamespace) {
		if err := finalizers.Add(ctx, r.Client, sub, v1alpha1.FinalizerSubNamespace, &r.known); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	v, delay := r.createIfAllowed(ctx, sub)
	if err := r.reportVerdict(ctx, sub, v); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.known.Record(sub)
	return ctrl.Result{RequeueAfter: delay}, nil
}

// createIfAllowed judges the SubNamespace and creates its namespace where that is due. It returns what to report, and
// how long to wait before the next pass where no event will cause one (0: not at all).
func (r *Reconciler) createIfAllowed(ctx context.Context, sub *v1alpha1.SubNamespace) (v verdict, again time.Duration) {
	key := client.ObjectKeyFromObject(sub)
	if line := r.waiting.lineOf(key); line != "" {
		defer func() {
			if r.waiting.lineOf(key) != line {
				r.lookAgainInLine(line) // those behind it have one fewer ahead, though nothing in that tree need have changed
			}
		}()
	}
	v = decideVerdict(r.View.Snapshot(), sub)
	if v.create {
		v, again = r.createNamespace(ctx, sub)
		if place := r.View.Snapshot().Place(sub.Namespace); !v.isReady() && !v.inLine && place.InTree() {
			r.lookAgainInLine(place.Path[0]) // its place is free again, though nothing in the forest has changed
		}
	}
	if v.reason == v1alpha1.ReasonNamespaceTerminating {
		v, again = r.describeTermination(ctx, sub.Name, v), terminationDelay
	}
	if v.reason != v1alpha1.ReasonCreateFailed {
		r.refused.Clear(sub.Namespace + "/" + sub.Name)
	}
	r.keepLine(sub, v)
	return v, again
}

// terminationDelay is the time between two reports on what remains in a terminating namespace: the view, which shows
// its end, has none of its conditions.
const terminationDelay = 15 * time.Second

// describeTermination adds to v what the conditions of the terminating namespace report about its remaining contents.
// Users of the tenant can read that nowhere else: Kubernetes has deleted the RoleBindings in the namespace.
func (r *Reconciler) describeTermination(ctx context.Context, name string, v verdict) verdict {
	namespace := &corev1.Namespace{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return v
	}
	if remaining := forest.DescribeRemaining(namespace.Status.Conditions); remaining != "" {
		v.message += ": " + remaining
	}
	return v
}

// keepLine puts a SubNamespace in a line only if nothing but a limit of its tree stops it, and otherwise takes it out
// of its line.
func (r *Reconciler) keepLine(sub *v1alpha1.SubNamespace, v verdict) {
	place := r.View.Snapshot().Place(sub.Namespace)
	switch {
	case v.tooDeep && place.InTree():
		r.waiting.waitForDepth(place.Path[0], sub)
		if !forest.DepthObstacle(r.View.Snapshot(), sub.Namespace).Exists() {
			r.lookAgainInLine(place.Path[0]) // the limit was raised after the SubNamespace was judged and before it joined the line
		}
	case !v.inLine:
		r.leaveLine(client.ObjectKeyFromObject(sub))
	}
}

// createNamespace creates the namespace. A request that failed is sent again only after its back-off, whatever event
// requeues the SubNamespace sooner: the report of the failure causes such an event itself.
func (r *Reconciler) createNamespace(ctx context.Context, sub *v1alpha1.SubNamespace) (verdict, time.Duration) {
	key, child := sub.Namespace+"/"+sub.Name, forest.NewChild(r.View.Snapshot(), forest.SubOf(sub))
	var noRoom *verdict
	release := func() {}
	defer func() { release() }()
	refused := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionStalled) != nil // as it was reported, while the request waits
	again, err := r.refused.Try(apianswer.Attempt{
		Key: key, Request: apianswer.RequestOf(sub.UID, sub.Generation, child.Labels, child.Annotations), RetryMax: r.RetryMax, Outages: true,
		Send: func() error {
			// Within the attempt, so that a request that waits for its back-off holds no place.
			place, v := r.waiting.reservePlace(sub)
			if place == nil {
				noRoom = &v
				return nil
			}
			release = place
			err := r.Namespaces.Create(ctx, child)
			refused = apianswer.IsRefusal(err)
			return err
		},
	})
	switch {
	case noRoom != nil:
		return *noRoom, 0
	case again > 0:
		return verdict{reason: v1alpha1.ReasonCreateFailed, message: r.refused.Explain(key, r.RetryMax, "SubNamespace"), stalled: refused}, again
	case err != nil:
		return r.lookAgain(ctx, sub), 0
	}
	r.announceCreated(sub)
	return decideVerdict(r.View.Snapshot(), sub).orActive(), 0
}

// lookAgain reads the namespace that took the name since the snapshot: the operator may have created it itself, before
// a restart.
func (r *Reconciler) lookAgain(ctx context.Context, sub *v1alpha1.SubNamespace) verdict {
	if err := r.Namespaces.Reread(ctx, sub.Name); err != nil {
		return verdict{reason: v1alpha1.ReasonCreating,
			message: "a namespace of this name exists already, but the operator could not read it: the operator tries again when its watch " +
				"shows the namespace"}
	}
	v := decideVerdict(r.View.Snapshot(), sub)
	if v.create {
		return verdict{reason: v1alpha1.ReasonCreating,
			message: "a namespace of this name was just created: the operator reads it before it decides"}
	}
	return v
}
