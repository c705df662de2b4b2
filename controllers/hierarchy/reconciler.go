// Package hierarchy keeps the metadata of managed namespaces: tree labels, ancestry, what they inherit.
package hierarchy

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Reconciler writes what the forest derives for a namespace: all keys of one namespace in one write, none at rest.
type Reconciler struct {
	Client      client.Client
	Index       *index.Index
	Events      record.EventRecorder
	Concurrency int

	rejected sync.Map // name of a namespace → what the API server said of our write
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("hierarchy").
		WatchesRawSource(r.Index.Source(func(c index.Change) []reconcile.Request {
			requests := make([]reconcile.Request, 0, len(c.Namespaces))
			for _, name := range c.Namespaces {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
			return requests
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}

// Rejected is what the API server said when it refused the keys of a namespace, or "".
func (r *Reconciler) Rejected(namespace string) string {
	text, _ := r.rejected.Load(namespace)
	s, _ := text.(string)
	return s
}

// Reconcile brings the keys of one namespace to what they should be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := r.Index.Snapshot()
	n, change := s.Namespace(req.Name), s.Desired(req.Name)
	if change.Empty() {
		r.rejected.Delete(req.Name)
		return ctrl.Result{}, nil
	}
	written, err := Write(ctx, r.Client, n, change)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil // the event of the other write comes sooner
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		if old, _ := r.rejected.Swap(req.Name, err.Error()); old != err.Error() {
			r.Index.Touch(req.Name) // its SubNamespace says so
		}
		return ctrl.Result{}, err
	case err != nil:
		return ctrl.Result{}, err
	}
	r.rejected.Delete(req.Name)
	r.Index.Observe(written)
	r.announce(s, n, change)
	return ctrl.Result{}, nil
}

// announce tells a tenant that the shape of its root was put back.
func (r *Reconciler) announce(s *forest.Snapshot, n *forest.Namespace, change forest.Change) {
	_, shape := change.Labels[v1alpha1.LabelType]
	tenant := s.Tenant(n.Name)
	if !shape || tenant == nil {
		return
	}
	r.Events.Event(&v1alpha1.LNamespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace"},
		ObjectMeta: metav1.ObjectMeta{Name: tenant.Name, UID: types.UID(tenant.UID)},
	}, corev1.EventTypeNormal, string(v1alpha1.ReasonDriftRepaired), "label "+v1alpha1.LabelType+" of the Namespace was put back")
}

// Write changes the metadata of a Namespace in one request that is refused if it is no longer the n that was seen.
func Write(ctx context.Context, c client.Client, n *forest.Namespace, change forest.Change) (*metav1.PartialObjectMetadata, error) {
	meta := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}
	if len(change.Labels) > 0 {
		meta["labels"] = change.Labels
	}
	if len(change.Annotations) > 0 {
		meta["annotations"] = change.Annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, fmt.Errorf("writing a patch of Namespace %s: %w", n.Name, err)
	}
	written := &metav1.PartialObjectMetadata{}
	written.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	written.Name = n.Name
	err = c.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.OperatorName))
	Writes.WithLabelValues("patch", result(err)).Inc()
	return written, err
}
