package subnamespace

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/finalizers"
	"github.com/warren-tenancy/warren/internal/forest"
)

// finalize deletes the namespace of a SubNamespace that is being deleted, or leaves it, and lets the SubNamespace go. It
// doesn't wait for the namespace to be gone, so that a namespace that hangs never blocks its parent.
func (r *Reconciler) finalize(ctx context.Context, sub *v1alpha1.SubNamespace) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(sub, v1alpha1.FinalizerSubNamespace) {
		return ctrl.Result{}, nil
	}
	s := r.Index.Snapshot()
	child := s.Namespace(sub.Name)
	reason, message := keep(s, child, sub.Namespace)
	if reason == "" {
		served, err := apianswer.Served(ctx, r.Live, "subnamespaces")
		switch {
		case err != nil:
			return ctrl.Result{}, fmt.Errorf("making sure that SubNamespaces are not being removed as a kind: %w", err)
		case !served:
			reason, message = v1alpha1.ReasonNamespaceReleased, "the kind SubNamespace is being removed; the namespace stays"
		}
	}
	if reason == "" {
		err := r.delete(ctx, s, child)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: 200 * time.Millisecond}, nil
		case err != nil && apianswer.IsRefusal(err):
			reason, message = v1alpha1.ReasonDeletionRefused, "the API server refuses to delete the namespace: "+err.Error()
		case err != nil:
			return ctrl.Result{}, err
		default:
			reason, message = v1alpha1.ReasonNamespaceDeleted, "the namespace is being deleted"
		}
	}
	r.announceEnd(sub, reason, message)
	return apianswer.AfterWrite(finalizers.Remove(ctx, r.Client, sub, v1alpha1.FinalizerSubNamespace))
}

// keep says why the namespace of a SubNamespace that goes is not deleted; "" if it is to be deleted.
func keep(s *forest.Snapshot, child *forest.Namespace, parent string) (v1alpha1.Reason, string) {
	switch {
	case child == nil || child.Terminating:
		return v1alpha1.ReasonNamespaceDeleted, ""
	case !child.BoundTo(parent):
		return v1alpha1.ReasonNamespaceReleased, "the namespace does not belong to this SubNamespace; it stays"
	}
	if s.Protected(child.Name) {
		return v1alpha1.ReasonDeletionRefused, "namespace " + child.Name + " is protected, by its name in protectedNamespaces of the configuration or by its label; it stays"
	}
	if why := s.HeldByChildren(child.Name); why != "" {
		return v1alpha1.ReasonDeletionRefused, why
	}
	if p := s.Namespace(parent); (p == nil || p.Terminating) && !s.CascadingAllowed(child.Name) {
		return v1alpha1.ReasonNamespaceReleased, "the parent goes without permission to delete what is below it; the namespace stays"
	}
	return "", ""
}

// delete asks for the deletion of a namespace if it is still the one that was seen.
func (r *Reconciler) delete(ctx context.Context, s *forest.Snapshot, n *forest.Namespace) error {
	resourceVersion, err := r.bequeath(ctx, s, n)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Namespaces.Delete(ctx, n.Name, n.UID, resourceVersion))
}

// bequeath writes on a namespace that goes with sub-namespaces below it that they may go too: the ancestor that said so
// is often gone before the contents of this one are deleted, and nobody else would know.
func (r *Reconciler) bequeath(ctx context.Context, s *forest.Snapshot, n *forest.Namespace) (resourceVersion string, err error) {
	told := n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True || s.Rules().AllowCascading
	if told || len(s.BoundChildren(n.Name)) == 0 {
		return n.ResourceVersion, nil
	}
	yes := v1alpha1.True
	return r.Namespaces.Patch(ctx, n, forest.Change{Annotations: map[string]*string{v1alpha1.AnnotationCascading: &yes}})
}
