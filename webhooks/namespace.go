package webhooks

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// namespaceValidator checks Namespaces whose Warren keys change.
type namespaceValidator struct {
	liveView
	ask authorizer.Asker
}

// ValidateCreate implements admission.Validator.
func (v *namespaceValidator) ValidateCreate(ctx context.Context, n *corev1.Namespace) (admission.Warnings, error) {
	now := forest.NamespaceOf(n)
	s, err := v.snapshotFor(ctx, nil, now)
	if err != nil {
		return nil, err
	}
	return v.checkNamespaceChange(ctx, s.WithoutNamespace(n.Name), nil, now)
}

// ValidateUpdate implements admission.Validator.
func (v *namespaceValidator) ValidateUpdate(ctx context.Context, was, is *corev1.Namespace) (admission.Warnings, error) {
	old, now := forest.NamespaceOf(was), forest.NamespaceOf(is)
	s, err := v.snapshotFor(ctx, old, now)
	if err != nil {
		return nil, err
	}
	return v.checkNamespaceChange(ctx, s.WithNamespace(old), old, now)
}

// snapshotFor returns the forest with what a change of a namespace refers to. The SubNamespace that would own the
// namespace is that of the API server: the deletion of one that the forest has not seen yet would take the namespace
// with it.
func (v *namespaceValidator) snapshotFor(ctx context.Context, old, now *forest.Namespace) (*forest.Snapshot, error) {
	s, err := v.snapshotWith(ctx, now.Parent(), now.Template())
	parent := newOwner(old, now)
	if err != nil || parent == "" {
		return s, err
	}
	switch sub, err := v.readSubLive(ctx, parent, now.Name); {
	case err != nil:
		return nil, err
	case sub == nil:
		return s.WithoutSub(parent, now.Name), nil
	default:
		return s.WithSub(forest.SubOf(sub)), nil
	}
}

// readSubLive returns SubNamespace parent/name as the API server has it; nil if there is none.
func (v *namespaceValidator) readSubLive(ctx context.Context, parent, name string) (*v1alpha1.SubNamespace, error) {
	sub := &v1alpha1.SubNamespace{}
	switch err := v.live.Get(ctx, client.ObjectKey{Namespace: parent, Name: name}, sub); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, readFailedError("SubNamespace "+parent+"/"+name, err)
	}
	return sub, nil
}

// checkNamespaceChange checks a namespace that is created or changed. The answer names only namespaces that the user
// may see.
func (v *namespaceValidator) checkNamespaceChange(ctx context.Context, before *forest.Snapshot, old,
	now *forest.Namespace) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	var f findings
	checkWithinSight(ctx, v.ask, user, []string{now.Name, now.Parent(), now.Template()},
		func(g *visibility) { f = checkNamespace(before, old, now, g) })
	return answerNamespace(f, now.Name)
}

// ValidateDelete implements admission.Validator.
func (v *namespaceValidator) ValidateDelete(ctx context.Context, n *corev1.Namespace) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	old := forest.NamespaceOf(n)
	s := v.view.Snapshot().WithNamespace(old)
	var f findings
	checkWithinSight(ctx, v.ask, user, []string{n.Name}, func(g *visibility) { f = checkNamespaceDeletion(s, old, g) })
	if owned, err := v.isOwnedLive(ctx, s, old); err != nil {
		return nil, err
	} else if owned {
		f.addProblems(field.Forbidden(field.NewPath("metadata", "name"),
			"delete the SubNamespace "+n.Name+" in namespace "+old.Parent()+" instead"))
	} else if len(f.problems) > 0 {
		if _, err := v.recheckDeletionLive(ctx, s, n.Name, f); err != nil {
			return nil, err
		}
	}
	return answerNamespace(f, n.Name)
}

// isOwnedLive reads from the API server whether the SubNamespace of a bound namespace exists and is not being deleted.
// A SubNamespace whose deletion the forest has not seen yet must not keep its namespace from being deleted.
func (v *namespaceValidator) isOwnedLive(ctx context.Context, s *forest.Snapshot, n *forest.Namespace) (bool, error) {
	if n.Terminating || s.Protected(n.Name) || owningSubNamespace(s, n) == nil {
		return false, nil
	}
	sub, err := v.readSubLive(ctx, n.Parent(), n.Name)
	return sub != nil && sub.DeletionTimestamp.IsZero(), err
}

func answerNamespace(f findings, name string) (admission.Warnings, error) {
	return f.warnings, kindNamespace.refusalOfProblems(name, f.problems)
}
