// Package subnamespace makes, watches over and deletes the namespaces of SubNamespaces.
package subnamespace

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/namespaces"
	"github.com/warren-tenancy/warren/internal/view"
)

// Reconciler brings the namespace of one SubNamespace to what it should be.
type Reconciler struct {
	Client client.Client
	// Live reads without a cache.
	Live       client.Reader
	Namespaces *namespaces.Writer
	Index      *view.View
	Events     record.EventRecorder
	// Rejected is what the API server said when it refused the keys of a namespace, or "".
	Rejected    func(namespace string) string
	Concurrency int
	// RetryMax caps the back-off of what is refused.
	RetryMax time.Duration

	mu       sync.Mutex
	room     map[string]bool            // names of namespaces that are being made: they count against the limits
	waiting  map[string]map[string]bool // by root: parent/name of the SubNamespaces that a limit holds back; true: that wait for room
	failures map[string]int             // by parent/name
	written  map[string]string          // by parent/name: resourceVersions of own writes that the cache has not shown yet
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.room, r.waiting, r.failures, r.written = map[string]bool{}, map[string]map[string]bool{}, map[string]int{}, map[string]string{}
	if err := metrics.Registry.Register(population{r.Client}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("subnamespace").
		For(&v1alpha1.SubNamespace{}).
		WatchesRawSource(r.Index.Source(r.concerned)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}

// Reconcile brings one SubNamespace and its namespace to what they should be: what there is, what is to be done, do it, say so.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	sub := &v1alpha1.SubNamespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, sub); err != nil {
		r.seen(req.String(), "")
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.seen(req.String(), sub.ResourceVersion) {
		return ctrl.Result{}, nil // what we wrote last is still to come, and asks again
	}
	if !sub.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, sub)
	}
	if r.Index.Snapshot().Namespace(sub.Namespace) == nil {
		return ctrl.Result{}, nil // its namespace exists, the watch is yet to bring it, and then it asks again
	}
	if !controllerutil.ContainsFinalizer(sub, v1alpha1.FinalizerSubNamespace) {
		if err := r.addFinalizer(ctx, sub); err != nil {
			return apianswer.AfterWrite(err)
		}
		r.wrote(req.String(), sub.ResourceVersion)
	}
	v, delay := r.settle(ctx, sub)
	if err := r.report(ctx, sub, v); err != nil {
		return apianswer.AfterWrite(err)
	}
	r.wrote(req.String(), sub.ResourceVersion)
	return ctrl.Result{RequeueAfter: delay}, nil
}

// wrote notes how far our own writes have brought a SubNamespace. To look at an older version would report it again.
func (r *Reconciler) wrote(key, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[key] = resourceVersion
}

// seen says whether the cache has caught up with our own writes; "" says that the object is gone.
func (r *Reconciler) seen(key, resourceVersion string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if resourceVersion != "" && view.Newer(r.written[key], resourceVersion) {
		return false
	}
	delete(r.written, key)
	return true
}

// settle decides and acts. It returns what is to be reported, and when to look again where no event will tell.
func (r *Reconciler) settle(ctx context.Context, sub *v1alpha1.SubNamespace) (verdict, time.Duration) {
	key := sub.Namespace + "/" + sub.Name
	v := decide(r.Index.Snapshot(), sub)
	if v.create {
		v = r.create(ctx, sub)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if place := r.Index.Snapshot().Place(sub.Namespace); v.tooDeep && place.InTree() {
		r.wait(place.Path[0], key, false)
	}
	if v.reason != v1alpha1.ReasonCreateFailed {
		delete(r.failures, key)
		return v, 0
	}
	r.failures[key]++
	return v, min(time.Second<<min(r.failures[key]-1, 10), r.RetryMax)
}

// create makes the namespace.
func (r *Reconciler) create(ctx context.Context, sub *v1alpha1.SubNamespace) verdict {
	release, v := r.reserve(sub)
	if release == nil {
		return v
	}
	defer release()
	child := r.Index.Snapshot().NewChild(sub.Namespace, sub.Name)
	err := r.Namespaces.Create(ctx, child)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.lookAgain(ctx, sub)
	case err != nil:
		return verdict{reason: v1alpha1.ReasonCreateFailed, message: err.Error(), stalled: apianswer.IsRefusal(err)}
	}
	r.announceCreated(sub)
	return decide(r.Index.Snapshot(), sub).orActive()
}

// lookAgain is for a name that was taken meanwhile: perhaps by ourselves, in an earlier life.
func (r *Reconciler) lookAgain(ctx context.Context, sub *v1alpha1.SubNamespace) verdict {
	if err := r.Namespaces.Reread(ctx, sub.Name); err != nil {
		return verdict{reason: v1alpha1.ReasonCreating, message: "the API server did not answer the request to create the namespace: it is asked again"}
	}
	v := decide(r.Index.Snapshot(), sub)
	if v.create {
		return verdict{reason: v1alpha1.ReasonCreating, message: "a namespace of this name has just appeared: the operator reads it before it decides"}
	}
	return v
}

func (r *Reconciler) addFinalizer(ctx context.Context, sub *v1alpha1.SubNamespace) error {
	before := sub.DeepCopy()
	controllerutil.AddFinalizer(sub, v1alpha1.FinalizerSubNamespace)
	if err := r.Client.Patch(ctx, sub, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.OperatorName)); err != nil {
		return fmt.Errorf("adding the finalizer of SubNamespace %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	return nil
}
