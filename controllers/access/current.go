package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// outdatedError reports that a pass may grant nothing: what it knows is old, or the operator could not find out whether
// it is.
type outdatedError struct{ error }

func (e outdatedError) Unwrap() error { return e.error }

// mayGive reports whether next, the next write of a step that ensures its object, may give a right. A step that revokes
// writes the whole object, so it may add a subject, too. Without subjects, as in a role, that can't be seen, and the
// answer is true.
func mayGive(step grants.Step, next grants.Write, existing grants.Object) bool {
	switch next.Verb {
	case grants.WriteCreate:
		return true
	case grants.WriteUpdate:
		after := grants.Subjects(next.Object)
		return !step.Revokes || len(after) == 0 || len(grants.Minus(after, grants.Subjects(existing))) > 0
	default:
		return false
	}
}

// checkCurrent returns an outdatedError if the API server has another LNamespace than tenant, or has it with another
// spec or other recorded service accounts. It does so, too, if the root or a listed account's namespace is another
// Namespace than the watch has shown, or if a read fails. A watch may be late: then the operator would grant again what
// was revoked since.
func (r *stepRunner) checkCurrent(ctx context.Context, tenant *v1alpha1.LNamespace) error {
	now := &v1alpha1.LNamespace{}
	err := r.objects.live.Get(ctx, types.NamespacedName{Name: tenant.Name}, now)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return outdatedError{fmt.Errorf("reading LNamespace %s again: %w", tenant.Name, err)}
	case now.UID != tenant.UID || now.Generation != tenant.Generation,
		!slices.Equal(now.Status.ServiceAccounts, tenant.Status.ServiceAccounts):
		return changedMeanwhile(v1alpha1.GroupVersion.WithResource("lnamespaces").GroupResource(), tenant.Name)
	}
	names := []string{tenant.Name}
	for _, account := range grants.ServiceAccounts(tenant) {
		if !slices.Contains(names, account.Namespace) {
			names = append(names, account.Namespace)
		}
	}
	for _, name := range names {
		uid, err := readUID(ctx, r.objects.live, name)
		switch {
		case err != nil:
			return outdatedError{err}
		case uid != r.uidOf(name):
			return changedMeanwhile(corev1.Resource("namespaces"), name)
		}
	}
	return nil
}

// changedMeanwhile returns a conflict, so that the pass is tried again like a pass whose write lost a race.
func changedMeanwhile(resource schema.GroupResource, name string) error {
	return outdatedError{apierrors.NewConflict(resource, name,
		errors.New("it has changed since the operator's watch showed it, so nothing is granted before the watch shows that"))}
}
