package lnamespace

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/hierarchy"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/forest"
)

// finalize ends a tenant: its rights first, then its namespace, then the finalizer. Where that would delete what nobody
// allowed to delete, nothing at all is touched.
func (r *Reconciler) finalize(ctx context.Context, lns *v1alpha1.LNamespace) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(lns, v1alpha1.FinalizerLNamespace) {
		return ctrl.Result{}, nil
	}
	served, err := index.Served(ctx, r.Live, "lnamespaces")
	if err != nil {
		v := verdict{reason: v1alpha1.ReasonDeleting, message: "waiting, because it can't be told whether LNamespaces are being removed as a kind: " + err.Error(), again: 15 * time.Second}
		return r.say(ctx, lns, v)
	}
	if !served {
		r.Events.Event(lns, corev1.EventTypeNormal, string(v1alpha1.ReasonNamespaceReleased), "the kind LNamespace is being removed; namespace "+lns.Name+" stays")
		return r.release(ctx, lns)
	}
	s := r.Index.Snapshot()
	if why := s.HeldByChildren(lns.Name); s.Owns(lns.Name, string(lns.UID)) && why != "" {
		return r.say(ctx, lns, r.warn(lns, v1alpha1.ReasonChildrenExist, why))
	}
	remaining, err := r.Access.Withdraw(ctx, lns)
	if err != nil {
		return ctrl.Result{}, err
	}
	v, gone := r.deleteRoot(ctx, lns, s)
	switch {
	case !gone:
		return r.say(ctx, lns, v)
	case len(remaining) > 0:
		return r.say(ctx, lns, verdict{reason: v1alpha1.ReasonDeleting, message: "waiting for " + strings.Join(remaining, ", "), again: time.Second})
	}
	return r.release(ctx, lns)
}

// deleteRoot deletes the root if it is this LNamespace's own, and says whether it is gone.
func (r *Reconciler) deleteRoot(ctx context.Context, lns *v1alpha1.LNamespace, s *forest.Snapshot) (v verdict, gone bool) {
	n := s.Namespace(lns.Name)
	switch {
	case !s.Owns(lns.Name, string(lns.UID)):
		return verdict{}, true
	case n.Terminating:
		return r.terminating(ctx, lns.Name), false
	}
	uid := types.UID(n.UID)
	err := r.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, client.Preconditions{UID: &uid})
	hierarchy.Count("delete", err)
	if err != nil && !apierrors.IsNotFound(err) {
		return verdict{reason: v1alpha1.ReasonDeleting, message: "namespace " + n.Name + " can't be deleted yet: " + err.Error(), again: 5 * time.Second}, false
	}
	return verdict{reason: v1alpha1.ReasonTerminating, message: "namespace " + n.Name + " is being terminated", again: 15 * time.Second}, false
}

// release lets the LNamespace go.
func (r *Reconciler) release(ctx context.Context, lns *v1alpha1.LNamespace) (ctrl.Result, error) {
	err := r.setFinalizer(ctx, lns, controllerutil.RemoveFinalizer)
	if err == nil {
		r.Report.forget(lns.UID)
	}
	return index.AfterRace(err)
}

func (r *Reconciler) say(ctx context.Context, lns *v1alpha1.LNamespace, v verdict) (ctrl.Result, error) {
	if err := r.Report.Report(ctx, lns, v.write(lns, r.Index.Snapshot())); err != nil {
		return index.AfterRace(err)
	}
	return ctrl.Result{RequeueAfter: v.again}, nil
}
