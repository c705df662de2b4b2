// Package lnamespace makes, adopts and deletes the root namespaces of LNamespaces. What a tenant's people may do there is
// package access's.
package lnamespace

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/hierarchy"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Withdrawer takes everything back that a tenant was granted. remaining names what could not be taken back yet.
type Withdrawer interface {
	Withdraw(ctx context.Context, lns *v1alpha1.LNamespace) (remaining []string, err error)
}

// Reconciler brings the root namespace of one LNamespace to what it should be.
type Reconciler struct {
	Client client.Client
	// Live reads without a cache.
	Live   client.Reader
	Index  *index.Index
	Events record.EventRecorder
	// Reserved says whether a name may not be taken by a new LNamespace.
	Reserved func(name string) bool
	// Bills says whether tenants are billed.
	Bills       func() bool
	Access      Withdrawer
	Report      *Reporter
	Concurrency int
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(population{r.Client}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("lnamespace").
		For(&v1alpha1.LNamespace{}).
		WatchesRawSource(r.Index.Source(Concerned)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}

// Concerned are the LNamespaces whose root or tree changed.
func Concerned(c index.Change) []reconcile.Request {
	found := map[string]bool{}
	for _, name := range c.Namespaces {
		found[name] = true
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			if place := s.Place(name); place.InTree() {
				found[place.Path[0]] = true
			}
		}
	}
	var requests []reconcile.Request
	for name := range found {
		if c.New.Tenant(name) != nil {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return requests
}

// Reconcile brings one LNamespace and its root to what they should be: what there is, what is to be done, do it, say so.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lns := &v1alpha1.LNamespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, lns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !lns.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, lns)
	}
	if !controllerutil.ContainsFinalizer(lns, v1alpha1.FinalizerLNamespace) {
		if err := r.setFinalizer(ctx, lns, controllerutil.AddFinalizer); err != nil {
			return index.AfterRace(err)
		}
	}
	v, err := r.settle(ctx, lns)
	if err != nil {
		return ctrl.Result{}, err
	}
	billing, err := r.billed(ctx, lns, v.ready)
	if err != nil {
		return index.AfterRace(err)
	}
	report := v.write(lns, r.Index.Snapshot())
	err = r.Report.Report(ctx, lns, func(status *v1alpha1.LNamespaceStatus) {
		report(status)
		status.Billing = billing
	})
	if err != nil {
		return index.AfterRace(err)
	}
	return ctrl.Result{RequeueAfter: v.again}, nil
}

// verdict is what is true of a root namespace.
type verdict struct {
	reason  v1alpha1.Reason
	message string
	ready   bool
	// template is why its template gives nothing, or "".
	template string
	again    time.Duration // when to look again where no event will tell
}

// settle makes, adopts or waits for the root namespace.
func (r *Reconciler) settle(ctx context.Context, lns *v1alpha1.LNamespace) (verdict, error) {
	s := r.Index.Snapshot()
	n, tenant := s.Namespace(lns.Name), index.TenantOf(lns)
	switch {
	case n == nil && r.Reserved(lns.Name):
		return r.warn(lns, v1alpha1.ReasonReservedName, "the configuration reserves the name "+lns.Name+": choose another"), nil
	case n == nil:
		return r.create(ctx, lns, s.NewRoot(tenant))
	case s.Owns(lns.Name, tenant.UID) && n.Terminating:
		return r.terminating(ctx, lns.Name), nil
	case s.Owns(lns.Name, tenant.UID):
		return r.settled(lns, s), nil
	case n.Terminating:
		return r.terminating(ctx, lns.Name), nil
	}
	if why := s.NotAdoptable(n); why != "" {
		return r.warn(lns, v1alpha1.ReasonNamespaceConflict, why), nil
	}
	return r.adopt(ctx, lns, n, s.Adoption(tenant))
}

// settled is true of a namespace that is ours; write keeps on saying how it became so. A template that gives nothing makes
// it none the less ready: what came from it stays.
func (r *Reconciler) settled(lns *v1alpha1.LNamespace, s *forest.Snapshot) verdict {
	v := verdict{reason: v1alpha1.ReasonCreated, message: "namespace " + lns.Name + " belongs to this LNamespace", ready: true, template: s.TemplateProblem(lns.Name)}
	was := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady)
	if v.template != "" && (was == nil || !strings.Contains(was.Message, v.template)) {
		r.Events.Event(lns, corev1.EventTypeWarning, string(v1alpha1.ReasonTemplateMissing), v.template+": nothing is inherited from it until it is there")
	}
	return v
}

// create makes the root with all its keys in the first version. It never has an owner: the removal of the CRD would
// delete it.
func (r *Reconciler) create(ctx context.Context, lns *v1alpha1.LNamespace, root *forest.Namespace) (verdict, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: root.Name, Labels: root.Labels, Annotations: root.Annotations}}
	err := r.Client.Create(ctx, namespace, client.FieldOwner(v1alpha1.OperatorName))
	hierarchy.Count("create", err)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.lookAgain(ctx, lns)
	case err != nil:
		return verdict{}, fmt.Errorf("making Namespace %s: %w", root.Name, err)
	}
	r.Index.Observe(namespace)
	r.Events.Event(lns, corev1.EventTypeNormal, string(v1alpha1.ReasonNamespaceCreated), "namespace "+root.Name+" was made")
	return r.settled(lns, r.Index.Snapshot()), nil
}

// lookAgain is for a name that was taken meanwhile: perhaps by ourselves, in an earlier life.
func (r *Reconciler) lookAgain(ctx context.Context, lns *v1alpha1.LNamespace) (verdict, error) {
	namespace, err := r.live(ctx, lns.Name)
	if err != nil {
		return verdict{reason: v1alpha1.ReasonPending, message: "the name is looked at again", again: time.Second}, client.IgnoreNotFound(err)
	}
	r.Index.Observe(namespace)
	return verdict{reason: v1alpha1.ReasonPending, message: "the name is looked at again", again: 200 * time.Millisecond}, nil
}

func (r *Reconciler) live(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return namespace, err
}

func (r *Reconciler) adopt(ctx context.Context, lns *v1alpha1.LNamespace, n *forest.Namespace, change forest.Change) (verdict, error) {
	written, err := hierarchy.Write(ctx, r.Client, n, change)
	if apierrors.IsConflict(err) {
		return verdict{reason: v1alpha1.ReasonPending, message: "the namespace is changing and will be looked at again", again: time.Second}, nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("adopting Namespace %s: %w", n.Name, err)
	}
	r.Index.Observe(written)
	r.Events.Event(lns, corev1.EventTypeNormal, string(v1alpha1.ReasonNamespaceAdopted), "namespace "+n.Name+" was adopted")
	return verdict{reason: v1alpha1.ReasonAdopted, message: adopted(n.Name), ready: true}, nil
}

func adopted(name string) string { return "namespace " + name + " was adopted by this LNamespace" }

// warn sends an Event when the reason is new.
func (r *Reconciler) warn(lns *v1alpha1.LNamespace, reason v1alpha1.Reason, message string) verdict {
	was := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady)
	if was == nil || was.Reason != string(reason) {
		r.Events.Event(lns, corev1.EventTypeWarning, string(reason), message)
	}
	return verdict{reason: reason, message: message}
}

// terminating waits for a namespace that goes, and passes on what the namespace controller says of it.
func (r *Reconciler) terminating(ctx context.Context, name string) verdict {
	v := verdict{reason: v1alpha1.ReasonTerminating, message: "namespace " + name + " is being terminated", again: 15 * time.Second}
	namespace, err := r.live(ctx, name)
	if err != nil {
		return v
	}
	for _, c := range namespace.Status.Conditions {
		remaining := c.Type == corev1.NamespaceContentRemaining || c.Type == corev1.NamespaceFinalizersRemaining
		if remaining && c.Status == corev1.ConditionTrue {
			v.message += ": " + c.Message
		}
	}
	return v
}

func (r *Reconciler) setFinalizer(ctx context.Context, lns *v1alpha1.LNamespace, change func(client.Object, string) bool) error {
	before := lns.DeepCopy()
	change(lns, v1alpha1.FinalizerLNamespace)
	return r.Client.Patch(ctx, lns, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.OperatorName))
}
