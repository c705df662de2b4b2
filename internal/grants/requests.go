package grants

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Names of the RoleBindings in a root that sudo on request needs, and of the ClusterRoles that component requests ships.
const (
	RequestsBinding   = "warren:sudo-requests"
	RequestersBinding = "warren:requesters"
	ApproversBinding  = "warren:approvers"

	requesterRole = "warren:sudo-requester"
	approverRole  = "warren:sudo-approver"
)

// requestBindings returns the RoleBindings of sudo on request: what the temporary sudoer may do in the tree, and who may write SudoRequests
// in the root. Without anybody who is eligible, they have no subjects.
func requestBindings(tenant *v1alpha1.LNamespace, refused []Refusal) []*rbacv1.RoleBinding {
	var temporary, eligible, approvers []v1alpha1.Subject
	if requests := tenant.Spec.SudoRequests; requests != nil {
		eligible = withoutReserved(requests.Eligible)
		approvers = withoutReserved(requests.Approvers)
	}
	if len(eligible) > 0 {
		temporary = []v1alpha1.Subject{{Kind: v1alpha1.SubjectServiceAccount, Namespace: v1alpha1.SudoNamespace, Name: tenant.Name}}
		for _, manager := range grantedSubjects(tenant.Spec.Managers, ListManagers, refused) {
			if !slices.Contains(approvers, manager) {
				approvers = append(approvers, manager)
			}
		}
	} else {
		approvers = nil
	}
	bindings := []*rbacv1.RoleBinding{
		roleBinding(tenant, RequestsBinding, v1alpha1.AccessRequest, clusterAdmin, temporary),
		roleBinding(tenant, RequestersBinding, v1alpha1.AccessRequest, requesterRole, eligible),
		roleBinding(tenant, ApproversBinding, v1alpha1.AccessRequest, approverRole, approvers),
	}
	for _, binding := range bindings[1:] {
		binding.Labels[v1alpha1.LabelPropagate] = v1alpha1.ModeNone
	}
	return bindings
}

// withoutReserved returns the subjects that a binding can have; the schema refuses the others too, unless the CRD is older.
func withoutReserved(subjects []v1alpha1.Subject) []v1alpha1.Subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s v1alpha1.Subject) bool {
		return s.Kind == v1alpha1.SubjectServiceAccount || refuseInvalid(s) != "" || refuseName(s) != ""
	})
}
