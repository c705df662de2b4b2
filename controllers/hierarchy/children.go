package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// managedBy labels the objects that the operator creates on a user's behalf.
var managedBy = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}

// requireChildren creates the SubNamespaces that the HierarchyConfiguration in parent requires and that no obstacle forbids. A
// SubNamespace that is no longer required stays. Where the API server refuses one, requireChildren returns how long to wait before
// the next try.
func (r *Reconciler) requireChildren(ctx context.Context, parent string) (again time.Duration, err error) {
	s := r.View.Snapshot()
	h, n := s.Hierarchy(parent), s.Namespace(parent)
	missing := forest.MissingChildren(s, parent)
	if len(missing) == 0 {
		r.clearRefusal(&r.refused, parent)
		return 0, nil
	}
	asked := apianswer.RequestOf(n.ResourceVersion, h.UID, missing)
	if wait := r.refused.Wait(parent, asked); wait > 0 {
		return wait, nil
	}
	var refused, failed []error
	for _, name := range missing {
		switch err := r.requireChild(ctx, h, name); {
		case err == nil, apianswer.IsGone(err):
		case apianswer.IsRefusal(err):
			refused = append(refused, err)
		default:
			failed = append(failed, err)
		}
	}
	if len(refused) == 0 {
		r.clearRefusal(&r.refused, parent)
		return 0, errors.Join(failed...)
	}
	return r.noteRefusal(ctx, &r.refused, parent, asked, errors.Join(refused...)), errors.Join(failed...)
}

// requireChild creates the SubNamespace of one required child. One that exists already is no error.
func (r *Reconciler) requireChild(ctx context.Context, h *forest.Hierarchy, name string) error {
	parent := h.Namespace
	sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name, Labels: managedBy, Finalizers: []string{v1alpha1.FinalizerSubNamespace}}}
	err := r.Client.Create(ctx, sub, client.FieldOwner(v1alpha1.OperatorName))
	if err == nil {
		r.Events.Event(referenceOf(h), corev1.EventTypeNormal, string(v1alpha1.ReasonChildRequested), "SubNamespace "+parent+"/"+name+" was created, because spec.requiredChildren names it")
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the required SubNamespace %s/%s: %w", parent, name, err)
	}
	return nil
}
