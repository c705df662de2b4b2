package sudo

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Refusal is why a new request will never be granted, whatever people decide.
type Refusal struct {
	Reason  v1alpha1.Reason
	Message string
}

// CheckNew returns why a request that is being made will never be granted; nil if nothing is against it. Facts.Older must hold all other
// requests of the same person in the tenant.
func CheckNew(f *Facts) *Refusal {
	v := judgeEligible(f)
	if v.isNone() {
		v = judgeLimits(f)
	}
	if v.isNone() {
		return nil
	}
	return &Refusal{v.reason, v.message}
}

// FindGroup returns the group by which a user is eligible: "" if the user is listed by name, or not at all.
func FindGroup(tenant *v1alpha1.LNamespace, user string, groups []string) string {
	return findGroup(lists(tenant).Eligible, user, groups)
}

// FindDeciderGroup returns the group by which a user may make a decision that names none: "" if the user is listed by name, or not at all.
func FindDeciderGroup(tenant *v1alpha1.LNamespace, d v1alpha1.SudoDecision, groups []string) string {
	judges := slices.Clone(Approvers(tenant))
	if d.Verdict != v1alpha1.SudoApprove { // managers may always deny and end
		judges = append(judges, tenant.Spec.Managers...)
	}
	return findGroup(judges, d.User, groups)
}

func findGroup(list []v1alpha1.Subject, user string, groups []string) string {
	if isListed(list, user, "") {
		return ""
	}
	for _, group := range groups {
		if isListed(list, "", group) {
			return group
		}
	}
	return ""
}

// DescribeFewApprovers says that a request can't get its approvals, because too few people other than the requester may approve; "" if
// there may be enough. How many a group has, nobody knows.
func DescribeFewApprovers(f *Facts) string {
	r, approvers := f.Request, Approvers(f.Tenant)
	if r.Spec.BreakGlass || slices.ContainsFunc(approvers, func(s v1alpha1.Subject) bool { return s.Kind == v1alpha1.SubjectGroup }) {
		return ""
	}
	others := 0
	for _, s := range approvers {
		if s.Kind == v1alpha1.SubjectUser && s.Name != r.Spec.User {
			others++
		}
	}
	const next = ": ask a manager for another entry of spec.sudoRequests.approvers"
	switch needed := max(1, int(lists(f.Tenant).Approvals)); {
	case others >= needed:
		return ""
	case others > 0:
		return fmt.Sprintf("%d approvals are needed, but only %d people other than %s may approve", needed, others, r.Spec.User) + next
	case isListed(approvers, r.Spec.User, ""):
		return "nobody but " + r.Spec.User + " may approve, and nobody approves their own request" + next
	}
	return "nobody may approve" + next
}
