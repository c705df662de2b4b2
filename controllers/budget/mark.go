package budget

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// markNamespaces has LabelShare on the namespaces of a tree that have a share, and on no other. Webhook room is asked by this label.
func (r *Reconciler) markNamespaces(ctx context.Context, t *tree) error {
	var failures []error
	for n, name := range t.unmarked {
		if n == mostWrites {
			r.again.AddAfter(pace, requestFor(t.root))
			break
		}
		r.known.mu.Lock()
		has := r.known.shares.At(placeOfShare(name)) != nil
		r.known.mu.Unlock()
		failures = append(failures, r.markNamespace(ctx, name, has))
	}
	return errors.Join(failures...)
}

// markNamespace sets LabelShare on a namespace, or removes it, unless nothing may be written there.
func (r *Reconciler) markNamespace(ctx context.Context, name string, has bool) error {
	s := r.View.Snapshot()
	n := s.Namespace(name)
	if n == nil || n.Terminating || s.Protected(name) || s.Place(name).Halted() || (n.Labels[v1alpha1.LabelShare] == v1alpha1.True) == has {
		return nil
	}
	change := forest.Change{Labels: map[string]*string{v1alpha1.LabelShare: nil}}
	if has {
		change.Labels[v1alpha1.LabelShare] = new(v1alpha1.True)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	switch _, err := r.PatchNamespace(ctx, n, change); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		r.queueSoon(name) // the view shows the newer namespace soon
		return nil
	case err != nil:
		return fmt.Errorf("writing label %s of namespace %s: %w", v1alpha1.LabelShare, name, err)
	}
	return nil
}
