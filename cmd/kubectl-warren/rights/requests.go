package rights

import (
	"context"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// onRequest is how reports show sudo that must be asked for.
const onRequest = "on-request"

// DescribeOnRequest states whether sudo on request must be asked for, or until when somebody has it.
func DescribeOnRequest(until *metav1.Time) string {
	switch {
	case until == nil:
		return onRequest
	case until.Before(new(metav1.Now())): // no operator runs, or finalizers of others hold the right
		return "until " + until.UTC().Format(time.RFC3339) + ", overdue"
	}
	return "until " + until.UTC().Format("15:04Z") // at most 24 hours ahead
}

// readRequests returns the SudoRequests of a tenant.
func (r *reader) readRequests(ctx context.Context, tenant string) ([]v1alpha1.SudoRequest, error) {
	list := &v1alpha1.SudoRequestList{}
	_, err := r.readListOrGap(ctx, list, "sudorequests", tenant)
	if apierrors.IsNotFound(err) {
		err = nil // the component was removed, and its RoleBindings are left
	}
	return list.Items, err
}

// findGranted returns the users who have sudo on request now, and the latest end of each.
func findGranted(requests []v1alpha1.SudoRequest) map[string]*metav1.Time {
	latest := map[string]*metav1.Time{}
	for i := range requests {
		r := &requests[i]
		active := v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive)
		if active == nil || active.Status != metav1.ConditionTrue {
			continue
		}
		end := r.Status.EndTime
		if end == nil { // finalizers held the right before its end was reported, so it is overdue since then
			end = &active.LastTransitionTime
		}
		if known := latest[r.Spec.User]; known == nil || known.Before(end) {
			latest[r.Spec.User] = end
		}
	}
	return latest
}

// holderOnRequest is a subject that may ask for sudo. until is the end of what is granted to it now, nil for nothing.
type holderOnRequest struct {
	rbacv1.Subject
	until *metav1.Time
}

// holdersOnRequest returns those who are eligible for sudo on request, and then those who have it by a group. If nobody can be read, the
// temporary sudoer stands for them.
func holdersOnRequest(eligible []rbacv1.Subject, temporary rbacv1.Subject, granted map[string]*metav1.Time) (all []holderOnRequest) {
	if len(eligible) == 0 {
		eligible = []rbacv1.Subject{temporary}
	}
	for _, s := range eligible {
		one := holderOnRequest{Subject: s}
		if s.Kind == rbacv1.UserKind {
			one.until = granted[s.Name]
		}
		all = append(all, one)
	}
	for _, name := range slices.Sorted(maps.Keys(granted)) {
		if user := (rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}); !slices.Contains(eligible, user) {
			all = append(all, holderOnRequest{user, granted[name]})
		}
	}
	return all
}

// listEligible is the field of an LNamespace that lists who may ask for sudo, in column LISTS.
const listEligible grants.List = "sudoRequests.eligible"

// tenantOfTemporarySudoer returns the tenant whose temporary sudoer a subject is; false for other subjects.
func tenantOfTemporarySudoer(s rbacv1.Subject) (string, bool) {
	return s.Name, s.Kind == rbacv1.ServiceAccountKind && s.Namespace == v1alpha1.SudoNamespace
}

// findEligible returns the subjects that may ask for sudo of a tenant: those that the operator has bound in its root, or those that the
// LNamespace lists, if the bindings are not known.
func findEligible(name string, spec *v1alpha1.LNamespaceSpec, inRoot []binding) []rbacv1.Subject {
	for _, b := range inRoot {
		if b.Namespace == name && b.Name == grants.RequestersBinding {
			return b.subjects
		}
	}
	var listed []rbacv1.Subject
	if spec.SudoRequests != nil {
		for _, one := range spec.SudoRequests.Eligible {
			listed = append(listed, subjectOfBinding(one))
		}
	}
	return listed
}

// eligibleFor returns those who may ask for sudo of a tenant, or have it now, and so may make the request.
func (a *asker) eligibleFor(ctx context.Context, temporary rbacv1.Subject, name string, via []Via) ([]Holder, error) {
	of, err := a.read.readTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	here, err := a.read.bindingsInNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	requests, err := a.read.readRequests(ctx, name)
	if err != nil {
		return nil, err
	}
	via = reachedThrough(subjectOfList(temporary).String(), via)
	var holders []Holder
	for _, one := range holdersOnRequest(findEligible(name, &of.spec, here.items), temporary, findGranted(requests)) {
		holders = append(holders,
			Holder{Subject: subjectOfList(one.Subject), Sudo: true, OnRequest: true, Until: one.until, Tenant: name, Via: via})
	}
	return holders, nil
}

// hasRequests reports whether people may ask for sudo of the tenant: the LNamespace lists some, or a binding of its tree names the
// temporary sudoer.
func (s *survey) hasRequests() bool {
	if s.spec.SudoRequests != nil && len(s.spec.SudoRequests.Eligible) > 0 {
		return true
	}
	return slices.ContainsFunc(s.here, func(b binding) bool {
		return slices.ContainsFunc(b.subjects, func(one rbacv1.Subject) bool {
			name, is := tenantOfTemporarySudoer(one)
			return is && name == s.tenant
		})
	})
}

// recordOnRequest records the role that the temporary sudoer has as one that each who is eligible must ask for, or has for a time.
func (s *survey) recordOnRequest(b binding, namespaces []string, temporary rbacv1.Subject) {
	for _, one := range holdersOnRequest(findEligible(s.tenant, &s.spec, s.here), temporary, s.granted) {
		via := b.viaBinding()
		if one.Subject != temporary {
			via.Through = subjectOfList(temporary).String()
		}
		e := s.entryOfSubject(one.Subject)
		e.near, e.Until = true, one.until
		addOnceTo(&e.OnRequest, b.role.Name)
		for _, namespace := range namespaces {
			addOnceTo(&e.Namespaces, namespace)
		}
		e.Via = append(e.Via, via)
	}
}

// recordGranted records what SudoRequests grant now where the bindings can't be read, as for the managers.
func (s *survey) recordGranted() {
	temporary := v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: v1alpha1.SudoNamespace, Name: s.tenant}
	for _, name := range slices.Sorted(maps.Keys(s.granted)) {
		e := s.entryOfSubject(rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})
		if e.Until != nil {
			continue
		}
		e.near, e.Until, e.OnRequest, e.Namespaces = true, s.granted[name], []string{"cluster-admin"}, slices.Clone(s.tree)
		e.Via = append(e.Via, Via{Through: temporary.String(), Reason: "a granted SudoRequest"})
	}
}

// OpenRequest is a SudoRequest that waits for decisions, or is in force.
type OpenRequest struct {
	Name, User, Group, Reason, Duration string
	BreakGlass                          bool
	// State is the reason of condition Active, and Message what it says.
	State, Message string
	Until          *metav1.Time // nil unless it is in force
}

// OpenRequests returns the tenant's SudoRequests that are not over, the newest first.
func (a *Access) OpenRequests() (open []OpenRequest) {
	requests := slices.Clone(a.requests)
	slices.SortStableFunc(requests, func(x, y v1alpha1.SudoRequest) int { return y.CreationTimestamp.Compare(x.CreationTimestamp.Time) })
	for i := range requests {
		r := &requests[i]
		if sudo.IsFinished(r) {
			continue
		}
		one := OpenRequest{Name: r.Name, User: r.Spec.User, Group: r.Spec.Group, Reason: r.Spec.Reason, Duration: string(r.Spec.Duration),
			BreakGlass: r.Spec.BreakGlass, State: "New", Until: findGranted(requests[i : i+1])[r.Spec.User]}
		if active := v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive); active != nil {
			one.State, one.Message = active.Reason, active.Message
		}
		open = append(open, one)
	}
	return open
}

// answerOnRequest returns the answer with sudo on request of the tenant of the question's namespace; nil if the LNamespace is not known,
// or the person neither may ask for that nor has it.
func (a *asker) answerOnRequest(ctx context.Context, id Identity, q Question, name string) (*Case, error) {
	of, known := a.read.memory.tenants.findRemembered(name)
	if !known || of.spec.SudoRequests == nil {
		return nil, nil
	}
	requests, err := a.read.readRequests(ctx, name)
	if err != nil {
		return nil, err
	}
	until := findGranted(requests)[id.User]
	eligible := slices.ContainsFunc(of.spec.SudoRequests.Eligible,
		func(s v1alpha1.Subject) bool { return id.matchesSubject(subjectOfBinding(s)) })
	if until == nil && !eligible {
		return nil, nil
	}
	as := Person(v1alpha1.TemporarySudoer(name))
	v, err := a.askWhetherMay(ctx, as, q)
	if err != nil {
		return nil, err
	}
	via, err := a.findAllowingBindings(ctx, as, q, v)
	answer := &Case{Sudo: true, OnRequest: true, Until: until, Allowed: v.answer, Tenant: name, As: &as}
	if v.answer == No {
		answer.Note = "not allowed with sudo on request of " + name
	}
	temporary := v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: v1alpha1.SudoNamespace, Name: name}
	answer.Via = reachedThrough(temporary.String(), via)
	return answer, err
}

// describeAsking ends a sentence about a person who may make the request with sudo on request alone.
func (c Case) describeAsking() string {
	if c.Until == nil {
		return " may, but must ask for sudo first: kubectl sudo request --tenant " + c.Tenant + " --reason TEXT"
	}
	return " may, but only with sudo on request of " + c.Tenant + ", " + DescribeOnRequest(c.Until) + "."
}
