package subnamespace

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/finalizers"
	"github.com/warren-tenancy/warren/internal/forest"
)

// finalize deletes the namespace of a SubNamespace that is being deleted, or keeps it, and removes the finalizer.
func (r *Reconciler) finalize(ctx context.Context, sub *v1alpha1.SubNamespace) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(sub, v1alpha1.FinalizerSubNamespace) {
		return ctrl.Result{}, nil
	}
	s := r.View.Snapshot()
	child := s.Namespace(sub.Name)
	reason, message := forest.KeepsNamespace(s, sub.Namespace, sub.Name)
	if reason == "" {
		// When the CRD is deleted, so are all SubNamespaces: that must not delete namespaces.
		served, err := apianswer.Served(ctx, r.Live, "subnamespaces")
		switch {
		case err != nil:
			return ctrl.Result{}, fmt.Errorf("checking that the CRD of SubNamespaces exists and is not being deleted: %w", err)
		case !served:
			reason, message = v1alpha1.ReasonNamespaceReleased, "the kind SubNamespace is being removed; the namespace stays"
		}
	}
	if reason == "" {
		err := r.deleteNamespace(ctx, s, child)
		switch {
		// The namespace has changed since the snapshot, so whether it may be deleted is decided again.
		case apierrors.IsConflict(err):
			return ctrl.Result{}, err
		case err != nil && apianswer.IsRefusal(err):
			reason, message = v1alpha1.ReasonDeletionRefused, "the API server refuses to delete the namespace, so it stays. When the cause is "+
				"gone, create the SubNamespace again, and delete it: "+err.Error()
		case err != nil:
			return ctrl.Result{}, err
		default:
			reason, message = v1alpha1.ReasonNamespaceDeleted, "the namespace is being deleted"
		}
	}
	// The finalizer doesn't wait for the end of the namespace: one that hangs must not block its parent.
	r.announceEnd(sub, reason, message)
	return ctrl.Result{}, client.IgnoreNotFound(finalizers.Remove(ctx, r.Client, sub, v1alpha1.FinalizerSubNamespace, &r.known))
}

// deleteNamespace deletes the namespace n, if it still is the version of the snapshot.
func (r *Reconciler) deleteNamespace(ctx context.Context, s *forest.Snapshot, n *forest.Namespace) error {
	resourceVersion, err := r.permitCascade(ctx, s, n)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Namespaces.Delete(ctx, n.Name, n.UID, resourceVersion))
}

// permitCascade writes on n the permission to delete the sub-namespaces below it (see forest.Bequest), and returns the
// resourceVersion of n after that.
func (r *Reconciler) permitCascade(ctx context.Context, s *forest.Snapshot, n *forest.Namespace) (resourceVersion string, err error) {
	change := forest.Bequest(s, n)
	if change.Empty() {
		return n.ResourceVersion, nil
	}
	return r.Namespaces.Patch(ctx, n, change)
}
