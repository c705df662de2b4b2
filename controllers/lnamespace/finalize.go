package lnamespace

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/finalizers"
	"github.com/warren-tenancy/warren/internal/forest"
)

// finalizeTenant ends a tenant: it takes the rights away first, deletes the namespace, and removes the finalizer last.
// Where the namespace has bound children and nobody has allowed cascading deletion, finalizeTenant changes nothing.
// Where the kind LNamespace itself is being removed, it removes the finalizer and keeps the namespace.
func (r *Reconciler) finalizeTenant(ctx context.Context, lns *v1alpha1.LNamespace) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(lns, v1alpha1.FinalizerLNamespace) {
		return ctrl.Result{}, nil
	}
	served, err := apianswer.Served(ctx, r.Live, "lnamespaces")
	if err != nil {
		v := verdict{reason: v1alpha1.ReasonDeleting, message: "the operator deletes nothing until it knows whether the kind LNamespace " +
			"itself is being removed: " + err.Error(), again: 15 * time.Second}
		return r.reportVerdict(ctx, lns, v)
	}
	// The end of the CRD deletes every LNamespace: it must not delete namespaces.
	if !served {
		r.Events.Event(lns, corev1.EventTypeNormal, string(v1alpha1.ReasonNamespaceReleased),
			"the kind LNamespace is being removed; namespace "+lns.Name+" stays")
		return r.removeFinalizer(ctx, lns)
	}
	s := r.View.Snapshot()
	// Before anything is withdrawn: while the tenant stays, so do its rights.
	if why := forest.HeldByChildren(s, lns.Name); s.Owns(lns.Name, string(lns.UID)) && why != "" {
		return r.reportVerdict(ctx, lns, r.warnOnce(lns, v1alpha1.ReasonChildrenExist, why))
	}
	var remaining []string
	if r.Access != nil {
		if remaining, err = r.Access.Withdraw(ctx, lns); err != nil {
			return ctrl.Result{}, err
		}
	}
	v, gone := r.deleteRoot(ctx, lns, s)
	switch {
	case !gone:
		return r.reportVerdict(ctx, lns, v)
	case len(remaining) > 0:
		return r.reportVerdict(ctx, lns, verdict{reason: v1alpha1.ReasonDeleting, message: "waiting until the tenant owns none of these access " +
			"objects; if that lasts, remove the finalizers of other programs from them: " + strings.Join(remaining, ", "),
			again: time.Second})
	}
	return r.removeFinalizer(ctx, lns)
}

// deleteRoot deletes the root namespace if this LNamespace owns it. gone reports that this LNamespace owns no namespace
// any more; else v describes what the deletion waits for.
func (r *Reconciler) deleteRoot(ctx context.Context, lns *v1alpha1.LNamespace, s *forest.Snapshot) (v verdict, gone bool) {
	n := s.Namespace(lns.Name)
	switch {
	case !s.Owns(lns.Name, string(lns.UID)):
		return verdict{}, true
	case n.Terminating:
		return r.describeTermination(ctx, lns.Name), false
	case s.Protected(lns.Name):
		// A protected namespace is never deleted: an admin who protected it by mistake, with a glob, can still correct
		// the configuration.
		return verdict{reason: v1alpha1.ReasonDeleting, message: "namespace " + n.Name + " is protected, by its name in protectedNamespaces of " +
			"the configuration or by its label, " +
			"so it isn't deleted: lift the protection, or remove finalizer " + v1alpha1.FinalizerLNamespace + " to keep the namespace",
			again: 30 * time.Second}, false
	}
	err := r.Namespaces.Delete(ctx, n.Name, n.UID, n.ResourceVersion)
	if apierrors.IsConflict(err) { // the namespace changed since the snapshot
		return verdict{reason: v1alpha1.ReasonDeleting, message: "namespace " + n.Name + " has just been changed by another client: the " +
			"operator tries again by itself", again: 200 * time.Millisecond}, false
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return verdict{reason: v1alpha1.ReasonDeleting, message: "namespace " + n.Name + " can't be deleted yet: " + err.Error(),
			again: 5 * time.Second}, false
	}
	return verdict{reason: v1alpha1.ReasonTerminating, message: "namespace " + n.Name + " is being terminated", again: 15 * time.Second}, false
}

// removeFinalizer lets the API server delete the LNamespace, and drops what the reconciler remembers of it.
func (r *Reconciler) removeFinalizer(ctx context.Context, lns *v1alpha1.LNamespace) (ctrl.Result, error) {
	err := finalizers.Remove(ctx, r.Client, lns, v1alpha1.FinalizerLNamespace, &r.known)
	if err == nil {
		r.Report.dropTenant(lns.Name)
		r.refusals.Clear(string(lns.UID))
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *Reconciler) reportVerdict(ctx context.Context, lns *v1alpha1.LNamespace, v verdict) (ctrl.Result, error) {
	if err := r.Report.Report(ctx, lns, v.writeTo(lns, r.View.Snapshot())); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: v.again}, nil
}
