package sudo

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// FindLeftover returns which of the RoleBindings of a tenant was written for an earlier LNamespace of its name; "" if none was. Those of
// grants, in SudoNamespace, belong to no LNamespace.
func FindLeftover(tenant *v1alpha1.LNamespace, bindings []metav1.PartialObjectMetadata) string {
	for i := range bindings {
		b := &bindings[i]
		if b.Namespace != v1alpha1.SudoNamespace && b.Annotations[v1alpha1.AnnotationLNamespaceUID] != string(tenant.UID) {
			return b.Namespace + "/" + b.Name
		}
	}
	return ""
}

// lists returns spec.sudoRequests of a tenant; without one, nobody is eligible.
func lists(tenant *v1alpha1.LNamespace) v1alpha1.SudoRequests {
	if tenant.Spec.SudoRequests == nil {
		return v1alpha1.SudoRequests{}
	}
	return *tenant.Spec.SudoRequests
}

// Approvers returns who approves requests of a tenant: spec.sudoRequests.approvers, or the managers where there are none.
func Approvers(tenant *v1alpha1.LNamespace) []v1alpha1.Subject {
	if approvers := lists(tenant).Approvers; len(approvers) > 0 {
		return approvers
	}
	return tenant.Spec.Managers
}

// isListed reports whether a list has a user, or the group that the user has named. Policy sudo-requests has checked that it is theirs.
func isListed(list []v1alpha1.Subject, user, group string) bool {
	return slices.ContainsFunc(list, func(s v1alpha1.Subject) bool {
		switch s.Kind {
		case v1alpha1.SubjectUser:
			return s.Name == user
		case v1alpha1.SubjectGroup:
			return group != "" && s.Name == group
		}
		return false
	})
}

// isJudge reports whether a decision is that of an approver, or of a manager, who always may deny and end.
func isJudge(tenant *v1alpha1.LNamespace, d v1alpha1.SudoDecision) bool {
	return isListed(Approvers(tenant), d.User, d.Group) || isListed(tenant.Spec.Managers, d.User, d.Group)
}

// listApprovals returns the users, other than the requester, who approve a request and are approvers now.
func listApprovals(tenant *v1alpha1.LNamespace, r *v1alpha1.SudoRequest) (users []string) {
	for _, d := range r.Spec.Decisions {
		if d.Verdict == v1alpha1.SudoApprove && d.User != r.Spec.User && isListed(Approvers(tenant), d.User, d.Group) {
			users = append(users, d.User)
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}
