package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// subValidator checks SubNamespaces.
type subValidator struct {
	liveView
	ask authorizer.Asker
}

// ValidateCreate implements admission.Validator.
func (v *subValidator) ValidateCreate(ctx context.Context, sub *v1alpha1.SubNamespace) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	s, err := v.snapshotWith(ctx, sub.Namespace, sub.Name)
	if err != nil {
		return nil, err
	}
	placed := false
	if forest.ParentObstacle(s, sub.Namespace).Exists() {
		hc, err := readHierarchyOf(ctx, v.live, sub.Namespace)
		if err != nil {
			return nil, err
		}
		// The parent may be about to join a tree, in a request that the operator has not carried out yet.
		placed = hc != nil && hc.Spec.Parent != nil && *hc.Spec.Parent != ""
	}
	f := checkNewSub(s, sub, placed)
	waited, err := refuseAwaitedName(ctx, v.ask, user, s, sub.Name)
	if err != nil {
		return f.warnings, err
	}
	f.addProblems(waited...)
	return f.warnings, kindSubNamespace.refusalOfProblems(sub.Name, f.problems)
}

// ValidateUpdate implements admission.Validator. By a change of its spec, a SubNamespace whose name was taken asks for
// the name again. So one check of ValidateCreate is repeated: if namespaces wait for a parent of that name, the user
// needs authority over them.
func (v *subValidator) ValidateUpdate(ctx context.Context, old, now *v1alpha1.SubNamespace) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	s, err := v.snapshotWith(ctx, now.Name)
	if err != nil {
		return nil, err
	}
	problems := checkNewKeys(s.Rules(), old.Spec, now.Spec)
	// A SubNamespace that is being deleted must lose its finalizer whatever waits for its name.
	if now.DeletionTimestamp.IsZero() {
		waited, err := refuseAwaitedName(ctx, v.ask, user, s, now.Name)
		if err != nil {
			return nil, err
		}
		problems = append(problems, waited...)
	}
	return misplacedKeys(s.Rules(), old, now), kindSubNamespace.refusalOfProblems(now.Name, problems)
}

// ValidateDelete implements admission.Validator.
func (v *subValidator) ValidateDelete(ctx context.Context, sub *v1alpha1.SubNamespace) (admission.Warnings, error) {
	if !sub.DeletionTimestamp.IsZero() {
		return nil, nil // it is being deleted already; its reconciler decides about the namespace
	}
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	s, err := v.snapshotWith(ctx, sub.Namespace)
	if err != nil {
		return nil, err
	}
	hc, err := readHierarchyOf(ctx, v.live, sub.Namespace)
	if err != nil {
		return nil, err
	}
	var f findings
	// Only a bound namespace is deleted with its SubNamespace.
	if n := s.Namespace(sub.Name); n.BoundTo(sub.Namespace) && !n.Terminating {
		checkWithinSight(ctx, v.ask, user, []string{sub.Name, sub.Namespace}, func(g *visibility) { f = checkDeletion(s, sub.Name, g) })
		if f, err = v.recheckDeletionLive(ctx, s, sub.Name, f); err != nil {
			return f.warnings, err
		}
	}
	f.addProblems(checkNotRequiredChild(s.Namespace(sub.Namespace), hc, sub.Name)...)
	return f.warnings, kindSubNamespace.refusalOfProblems(sub.Name, f.problems)
}
