package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// managedBy labels the objects that the operator creates on a user's behalf.
var managedBy = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}

// requireChildren creates the missing SubNamespaces that the HierarchyConfiguration in parent requires, unless an
// obstacle forbids them. A name that is taken outside of the tree is no such obstacle: the SubNamespace then reports
// that its name was lost. A SubNamespace that is no longer required stays. Where the API server refuses one,
// requireChildren returns how long to wait before the next try.
func (r *Reconciler) requireChildren(ctx context.Context, parent string) (again time.Duration, err error) {
	s := r.View.Snapshot()
	h, n := s.Hierarchy(parent), s.Namespace(parent)
	missing := forest.MissingChildren(s, parent)
	if len(missing) == 0 {
		r.refused.Clear(parent)
		return 0, nil
	}
	var failed error
	asked := apianswer.RequestOf(n.ResourceVersion, h.UID, missing)
	again, err = r.refused.Try(apianswer.Attempt{Key: parent, Request: asked, RetryMax: r.RetryMax, Send: func() error {
		var refused error
		for _, name := range missing {
			switch err := r.requireChild(ctx, h, name); {
			case apianswer.IsGone(err):
			case apianswer.IsRefusal(err):
				// One name that is refused stops no other.
				refused = errors.Join(refused, err)
			default:
				failed = errors.Join(failed, err)
			}
		}
		return refused
	}})
	return again, errors.Join(err, failed)
}

// requireChild creates the SubNamespace of one required child. One that exists already is no error.
func (r *Reconciler) requireChild(ctx context.Context, h *forest.Hierarchy, name string) error {
	parent := h.Namespace
	// With its finalizer at once: deleted a moment later, it would leave its namespace behind.
	sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name, Labels: managedBy,
		Finalizers: []string{v1alpha1.FinalizerSubNamespace}}}
	err := r.Client.Create(ctx, sub, client.FieldOwner(v1alpha1.OperatorName))
	if err == nil {
		r.Events.Event(referenceOf(h), corev1.EventTypeNormal, string(v1alpha1.ReasonChildRequested),
			"SubNamespace "+parent+"/"+name+" was created, because spec.requiredChildren names it")
	}
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making the required SubNamespace %s/%s: %w", parent, name, err)
	}
	return nil
}
