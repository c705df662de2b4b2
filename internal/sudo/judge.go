package sudo

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Limits are those of the configuration.
type Limits struct {
	MaxDuration, PendingFor, HistoryFor time.Duration
	// MaxOpen and MaxPerDay are for one person in one tenant.
	MaxOpen, MaxPerDay int
	BreakGlass         bool
}

// Facts are what is known of one request, by live reads.
type Facts struct {
	Now     time.Time // by the clock of the API server
	Request *v1alpha1.SudoRequest
	Tenant  *v1alpha1.LNamespace // that of the request's namespace; nil if there is none
	Limits  Limits
	// Gap is why a policy that grants depend on is not in force; "" if all are, or if NeedsPolicies says that it doesn't matter now.
	Gap string
	// Leftover is a RoleBinding that the operator wrote for an earlier LNamespace of this name, and that binds the temporary sudoer, too;
	// "" if there is none, or if NeedsPolicies says that it doesn't matter now.
	Leftover string
	// Older are the requests that the same person has made in the tenant before this one.
	Older []v1alpha1.SudoRequest
	// Blind is why the objects of the grant can't be read; "" if they were.
	Blind string
	// The objects of the grant; nil where they don't exist.
	Timer   *batchv1.Job
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
}

// verdict is what holds of a request: nothing where it may be granted.
type verdict struct {
	reason  v1alpha1.Reason
	message string
}

func (v verdict) isNone() bool { return v.reason == "" }

// IsFinished reports whether a request is over for ever.
func IsFinished(r *v1alpha1.SudoRequest) bool {
	active := v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive)
	if active == nil {
		return false
	}
	return isFinal(v1alpha1.Reason(active.Reason))
}

// isFinal reports whether a request that has this reason never gets another one.
func isFinal(reason v1alpha1.Reason) bool {
	switch reason {
	case v1alpha1.ReasonTimeOver, v1alpha1.ReasonEnded, v1alpha1.ReasonDenied, v1alpha1.ReasonExpired, v1alpha1.ReasonNotEligible,
		v1alpha1.ReasonTooLong, v1alpha1.ReasonTooMany, v1alpha1.ReasonBreakGlassForbidden, v1alpha1.ReasonTenantReplaced:
		return true
	}
	return false
}

// judgeEnd returns what ends a request, whether it is in force or not; nothing ends it if the verdict is none.
func judgeEnd(f *Facts) verdict {
	r, tenant := f.Request, f.Tenant
	switch {
	case tenant == nil || tenant.DeletionTimestamp != nil:
		return verdict{v1alpha1.ReasonTenantReplaced, "LNamespace " + r.Namespace + " is gone"}
	case !tenant.CreationTimestamp.Before(&r.CreationTimestamp):
		return verdict{v1alpha1.ReasonTenantReplaced, "LNamespace " + r.Namespace + " is not older than the request. Make another request"}
	}
	for _, d := range r.Spec.Decisions {
		switch {
		case d.Verdict == v1alpha1.SudoDeny && isJudge(tenant, d):
			return verdict{v1alpha1.ReasonDenied, "denied by " + d.User + describeComment(d)}
		case d.Verdict == v1alpha1.SudoEnd && (d.User == r.Spec.User || isJudge(tenant, d)):
			return verdict{v1alpha1.ReasonEnded, "ended by " + d.User + describeComment(d)}
		}
	}
	return judgeEligible(f)
}

func judgeEligible(f *Facts) verdict {
	r, tenant := f.Request, f.Tenant
	if !isListed(lists(tenant).Eligible, r.Spec.User, r.Spec.Group) {
		return verdict{v1alpha1.ReasonNotEligible, fmt.Sprintf(
			"%s is not in spec.sudoRequests.eligible of LNamespace %s: ask a manager for an entry", describeRequester(r), tenant.Name)}
	}
	return verdict{}
}

// judgeGrant returns why a request that nothing has ended is not granted; none if it may be granted.
func judgeGrant(f *Facts) verdict {
	if v := judgeLimits(f); !v.isNone() {
		return v
	}
	r := f.Request
	if since := f.Now.Sub(r.CreationTimestamp.Time); since >= f.Limits.PendingFor {
		return verdict{v1alpha1.ReasonExpired, fmt.Sprintf("not granted within %s (sudo.requests.pendingFor). Make another request",
			f.Limits.PendingFor)}
	}
	needed, given := max(1, int(lists(f.Tenant).Approvals)), listApprovals(f.Tenant, r)
	if missing := needed - len(given); missing > 0 && !r.Spec.BreakGlass {
		return verdict{v1alpha1.ReasonPending, fmt.Sprintf("%d more of %d approvals needed, from %s", missing, needed,
			describeSubjects(Approvers(f.Tenant)))}
	}
	if f.Gap != "" {
		return verdict{v1alpha1.ReasonPolicyMissing, f.Gap}
	}
	if f.Leftover != "" {
		return verdict{v1alpha1.ReasonGroupInUse, "RoleBinding " + f.Leftover + " gives the temporary sudoer rights of an earlier LNamespace " +
			f.Tenant.Name + ": ask a cluster admin to delete it"}
	}
	return verdict{}
}

// judgeLimits returns which limit a request exceeds.
func judgeLimits(f *Facts) verdict {
	r, rules := f.Request, lists(f.Tenant)
	most, whose := f.Limits.MaxDuration, "sudo.requests.maxDuration of the configuration"
	if own := rules.MaxDuration.Value(); own > 0 && own < most {
		most, whose = own, "spec.sudoRequests.maxDuration of LNamespace "+f.Tenant.Name
	}
	if r.Spec.Duration.Value() > most {
		return verdict{v1alpha1.ReasonTooLong, fmt.Sprintf("%s is more than %s allows: %s", r.Spec.Duration, whose, most)}
	}
	if r.Spec.BreakGlass && !f.Limits.BreakGlass {
		return verdict{v1alpha1.ReasonBreakGlassForbidden, "sudo.requests.breakGlass of the configuration forbids sudo without approval"}
	}
	if r.Spec.BreakGlass && !rules.BreakGlass {
		return verdict{v1alpha1.ReasonBreakGlassForbidden,
			"spec.sudoRequests.breakGlass of LNamespace " + f.Tenant.Name + " forbids sudo without approval"}
	}
	return judgeNumber(f)
}

// judgeNumber returns which limit of numbers a new request exceeds. One that was reported before has been accepted: a later request does
// not push it out.
func judgeNumber(f *Facts) verdict {
	r := f.Request
	if isReported(r) {
		return verdict{}
	}
	open, sameDay := 0, 0
	for i := range f.Older {
		if !IsFinished(&f.Older[i]) {
			open++
		}
		// In whatever order they are reported, the first ones of a flood of one second are within the number of a day.
		if isEarlier(&f.Older[i], r) && r.CreationTimestamp.Sub(f.Older[i].CreationTimestamp.Time) < 24*time.Hour {
			sameDay++
		}
	}
	switch {
	case open >= f.Limits.MaxOpen:
		return verdict{v1alpha1.ReasonTooMany, fmt.Sprintf("%s has %d open requests here, and sudo.requests.maxOpen is %d: end one",
			r.Spec.User, open, f.Limits.MaxOpen)}
	case sameDay >= f.Limits.MaxPerDay:
		return verdict{v1alpha1.ReasonTooMany, fmt.Sprintf("%s has made %d requests here in 24 hours, and sudo.requests.maxPerDay is %d",
			r.Spec.User, sameDay, f.Limits.MaxPerDay)}
	}
	return verdict{}
}

// NeedsOlder reports whether Facts.Older decides about a request: only about one that was never reported.
func NeedsOlder(r *v1alpha1.SudoRequest) bool { return !isReported(r) }

func isReported(r *v1alpha1.SudoRequest) bool {
	return v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive) != nil
}

// IsOlder reports whether a request counts for the limits of another one of the same person. Creation times have whole seconds. Of those of
// one second, a request that was reported is older than one that was not, and UIDs order the rest.
func IsOlder(one, than *v1alpha1.SudoRequest) bool {
	if one.Spec.User != than.Spec.User || one.UID == than.UID {
		return false
	}
	if one.CreationTimestamp.Equal(&than.CreationTimestamp) && isReported(one) != isReported(than) {
		return isReported(one)
	}
	return isEarlier(one, than)
}

// isEarlier orders requests by the second in which they were made, and then by their UIDs.
func isEarlier(one, than *v1alpha1.SudoRequest) bool {
	if one.CreationTimestamp.Equal(&than.CreationTimestamp) {
		return one.UID < than.UID
	}
	return one.CreationTimestamp.Before(&than.CreationTimestamp)
}

// longestText bounds how much of a text of others a condition repeats, in characters.
const longestText = 200

func cutText(text string) string {
	characters := []rune(text)
	return string(characters[:min(len(characters), longestText)])
}

func describeComment(d v1alpha1.SudoDecision) string {
	if d.Comment == "" {
		return ""
	}
	return ": " + cutText(d.Comment)
}

func describeRequester(r *v1alpha1.SudoRequest) string {
	if r.Spec.Group == "" {
		return r.Spec.User
	}
	return r.Spec.User + " of group " + r.Spec.Group
}

// mostNamed bounds how many approvers a message names.
const mostNamed = 5

func describeSubjects(subjects []v1alpha1.Subject) string {
	if len(subjects) == 0 {
		return "nobody: the LNamespace has neither approvers nor managers"
	}
	names := make([]string, 0, mostNamed+1)
	for i, s := range subjects {
		if i == mostNamed {
			names = append(names, fmt.Sprintf("%d more", len(subjects)-mostNamed))
			break
		}
		names = append(names, string(s.Kind)+" "+s.Name)
	}
	return strings.Join(names, ", ")
}
