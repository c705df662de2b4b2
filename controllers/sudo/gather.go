package sudo

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// gatherFacts reads what the decision about a request depends on; nil if there is no such request. Everything is read live: a right may
// hang on a write of a moment ago.
func (r *Reconciler) gatherFacts(ctx context.Context, place types.NamespacedName) (*sudo.Facts, error) {
	f := &sudo.Facts{Request: &v1alpha1.SudoRequest{}, Limits: r.Limits}
	if found, err := r.read(ctx, place, f.Request); err != nil || !found {
		return nil, err
	}
	if !sudo.IsFinished(f.Request) || r.known.hasGrant(f.Request.UID) {
		err := r.gatherGrant(ctx, f)
		switch {
		case apierrors.IsForbidden(err): // the Role of the operator went with the namespace
			f.Blind = describeRefusal(err)
		case err != nil:
			return nil, err
		}
	}
	if !sudo.IsFinished(f.Request) {
		var err error
		if f.Tenant, err = readOrNil(ctx, r, types.NamespacedName{Name: place.Namespace}, &v1alpha1.LNamespace{}); err != nil {
			return nil, err
		}
		if f.Binding == nil {
			if err := r.gatherRules(ctx, f); err != nil {
				return nil, err
			}
		}
	}
	f.Now = r.clock.Now()
	return f, r.gatherGap(ctx, f)
}

// gatherGrant reads what was made of a request.
func (r *Reconciler) gatherGrant(ctx context.Context, f *sudo.Facts) (err error) {
	place := types.NamespacedName{Namespace: v1alpha1.SudoNamespace, Name: string(f.Request.UID)}
	// The timer last: with a RoleBinding that is newer than it, a right would seem to have no timer.
	if f.Binding, err = readOrNil(ctx, r, place, &rbacv1.RoleBinding{}); err != nil {
		return err
	}
	if f.Role, err = readOrNil(ctx, r, place, &rbacv1.Role{}); err != nil {
		return err
	}
	f.Timer, err = readOrNil(ctx, r, place, &batchv1.Job{})
	return err
}

// gatherRules reads what a grant depends on besides. Other requests are listed once in the life of a request: a live list, because the
// watch may not have shown yet which of several requests of one second was reported.
func (r *Reconciler) gatherRules(ctx context.Context, f *sudo.Facts) error {
	if sudo.NeedsOlder(f.Request) {
		all := &v1alpha1.SudoRequestList{}
		if err := r.client.List(ctx, all, client.InNamespace(f.Request.Namespace)); err != nil {
			return fmt.Errorf("listing the SudoRequests of LNamespace %s: %w", f.Request.Namespace, err)
		}
		for i := range all.Items {
			if sudo.IsOlder(&all.Items[i], f.Request) {
				f.Older = append(f.Older, all.Items[i])
			}
		}
	}
	return nil
}

// gatherGap reads whether the policies are in force, where the next step depends on it.
func (r *Reconciler) gatherGap(ctx context.Context, f *sudo.Facts) error {
	if sudo.IsFinished(f.Request) || !sudo.NeedsPolicies(f) {
		return nil
	}
	for _, policy := range []string{manifests.SudoRequests.Name, manifests.TemporarySudo.Name} {
		gap, err := r.findGap(ctx, manifests.Prefix+policy)
		if err != nil {
			return err
		}
		if gap != "" {
			f.Gap = gap + ": apply component requests"
		}
	}
	leftover, err := r.findLeftover(ctx, f.Tenant)
	f.Leftover = leftover
	return err
}

// findLeftover returns a RoleBinding of the temporary sudoer that the operator wrote for an earlier LNamespace of that name; "" if none.
// Such a one may lie in a namespace that left the tree, or was left behind when Warren was taken off the cluster.
func (r *Reconciler) findLeftover(ctx context.Context, tenant *v1alpha1.LNamespace) (string, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBindingList"))
	ofTenant := client.MatchingLabels{v1alpha1.LabelAccess: v1alpha1.AccessRequest, v1alpha1.LabelTenant: tenant.Name}
	if err := r.client.List(ctx, all, ofTenant); err != nil {
		return "", fmt.Errorf("listing the RoleBindings of the temporary sudoer of LNamespace %s: %w", tenant.Name, err)
	}
	return sudo.FindLeftover(tenant, all.Items), nil
}

// findGap returns why a policy is not in force; "" if it is.
func (r *Reconciler) findGap(ctx context.Context, name string) (string, error) {
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	found, err := r.read(ctx, types.NamespacedName{Name: name}, policy)
	if err != nil {
		return "", err
	}
	if !found {
		return "policy " + name + " is missing", nil
	}
	found, err = r.read(ctx, types.NamespacedName{Name: name}, binding)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "the binding of policy " + name + " is missing", nil
	case binding.Spec.PolicyName != name || !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		return "the binding of policy " + name + " doesn't deny", nil
	case binding.Spec.MatchResources != nil || binding.Spec.ParamRef != nil:
		return "the binding of policy " + name + " selects objects", nil
	case policy.Spec.FailurePolicy != nil && *policy.Spec.FailurePolicy != admissionregistrationv1.Fail:
		return "policy " + name + " has another failurePolicy than Fail", nil
	}
	return "", nil
}

// read reads one object, and reports whether there is one.
func (r *Reconciler) read(ctx context.Context, place types.NamespacedName, into client.Object) (found bool, err error) {
	err = r.client.Get(ctx, place, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, place, err)
	}
	return true, nil
}

// readOrNil reads one object into an empty one, and returns that; nil if there is no such object.
func readOrNil[O any, P interface {
	*O
	client.Object
}](ctx context.Context, r *Reconciler, place types.NamespacedName, empty P) (P, error) {
	if found, err := r.read(ctx, place, empty); err != nil || !found {
		return nil, err
	}
	return empty, nil
}
