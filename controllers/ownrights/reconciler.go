// Package ownrights keeps RoleBinding warren:operator in each namespace of the forest. It gives the operator its rights
// on the propagated kinds there. Only component hardened needs it, because the operator then has no such rights in the
// whole cluster. Without that component, package ownrights deletes these RoleBindings. The operator's sight is what
// these rights let it see. The forest is all trees of managed namespaces, with the templates.
package ownrights

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// leavePause is the time between two checks whether the last copy is gone from a namespace that has left the forest.
const leavePause = time.Second

// Reconciler keeps RoleBinding warren:operator in every namespace of the forest. After a namespace has left the forest,
// it keeps the RoleBinding until the copies there are deleted. It deletes the RoleBinding from other namespaces and, if
// Enabled is false, from all namespaces. Protected and terminating namespaces stay as they are.
type Reconciler struct {
	Client client.Client
	View   *view.View
	// Enabled reports whether the operator is to bind its role: propagation.bindOwnRole of the configuration file.
	Enabled bool
	// OperatorNamespace is the namespace of the service account that is bound.
	OperatorNamespace string
	// HoldsCopies reports whether a namespace holds copies that the operator deletes when the namespace leaves the
	// forest, or may hold some: copies.Runner.HoldsCopies.
	HoldsCopies func(namespace string) bool
	Concurrency int
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelAccess] == v1alpha1.AccessOperator })
	err := ctrl.NewControllerManagedBy(mgr).Named("sight").
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(requestNamespace), builder.WithPredicates(ours)).
		WatchesRawSource(r.View.Source(requestChanged)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency, RateLimiter: apianswer.RetryAfterOutage(),
			NewQueue: r.View.Queue(view.Named, nil)}).
		Complete(apianswer.Patiently(r))
	if err != nil {
		return fmt.Errorf("setting up the controller of the operator's own rights: %w", err)
	}
	return nil
}

func requestNamespace(_ context.Context, binding client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: binding.GetNamespace()}}}
}

func requestChanged(c view.Change) []reconcile.Request {
	var requests []reconcile.Request
	for _, namespace := range c.Namespaces {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}
	return requests
}

// Reconcile makes, mends or deletes the RoleBinding of one namespace.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	is := &rbacv1.RoleBinding{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: req.Name, Name: v1alpha1.OperatorBinding}, is); {
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, err
	case err != nil:
		is = nil
	}
	need := r.decideNeed(req.Name)
	switch need {
	case left:
		return ctrl.Result{RequeueAfter: leavePause}, nil
	case untouched:
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.writeBinding(ctx, is, r.newBinding(req.Name), need == needed))
}

// writeBinding makes the existing RoleBinding (the parameter named is; nil if there is none) equal to want, or creates
// want. It deletes a RoleBinding that is not needed, or has another roleRef. In the second case the event of the
// deletion causes the creation.
func (r *Reconciler) writeBinding(ctx context.Context, is, want *rbacv1.RoleBinding, needed bool) error {
	switch {
	case is != nil && (!needed || is.RoleRef != want.RoleRef): // the API server changes no roleRef
		return r.Client.Delete(ctx, is, client.Preconditions{UID: &is.UID, ResourceVersion: &is.ResourceVersion})
	case !needed:
		return nil
	case is == nil:
		return r.Client.Create(ctx, want, client.FieldOwner(v1alpha1.OperatorName))
	case !equality.Semantic.DeepEqual(is.Subjects, want.Subjects) || !equality.Semantic.DeepEqual(is.Labels, want.Labels):
		want.ResourceVersion = is.ResourceVersion
		return r.Client.Update(ctx, want, client.FieldOwner(v1alpha1.OperatorName))
	}
	return nil
}

// need states whether a namespace needs the operator's RoleBinding.
type need int8

const (
	none      need = iota
	needed         // the namespace is in the forest, halted or not
	left           // the namespace has left the forest, and the operator still deletes copies there
	untouched      // the namespace is gone, terminating or protected: the operator writes nothing there
)

func (r *Reconciler) decideNeed(namespace string) need {
	s := r.View.Snapshot()
	n, place := s.Namespace(namespace), s.Place(namespace)
	switch {
	case n == nil || n.Terminating || s.Protected(namespace):
		return untouched
	case !r.Enabled:
		return none
	case place.Kind != forest.None || place.Halted():
		return needed
	case r.HoldsCopies(namespace):
		return left
	}
	return none
}

// newBinding returns the RoleBinding that a namespace needs. Its label propagate is none, so that the RoleBinding is
// never a source, even where RoleBindings are propagated in mode All.
func (r *Reconciler) newBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.OperatorBinding, Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.OperatorName,
			v1alpha1.LabelAccess:    v1alpha1.AccessOperator,
			v1alpha1.LabelPropagate: v1alpha1.ModeNone,
		}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: v1alpha1.KindsRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.OperatorNamespace, Name: v1alpha1.OperatorAccount}},
	}
}
