package model_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// actions are what questions in namespaces are about.
var actions = []action{
	{"list", "", "pods", "", true},
	{"create", "", "pods", "exec", true},
	{"get", "", "secrets", "", true},
	{"delete", "", "configmaps", "", true},
	{"update", "", "services", "", true},
	{"patch", "apps", "deployments", "", true},
	{"create", "networking.k8s.io", "networkpolicies", "", true},
	{"create", "rbac.authorization.k8s.io", "rolebindings", "", true},
	{"create", "", "serviceaccounts", "token", true},
	{"list", "", "resourcequotas", "", true},
	{"get", "", "namespaces", "", true},
	{"create", "tenancy.warren.dev", "subnamespaces", "", true},
	{"update", "tenancy.warren.dev", "hierarchyconfigurations", "", true},

	{"update", "", "namespaces", "", false},
	{"delete", "", "namespaces", "", false},
	{"create", "", "resourcequotas", "", false},
	{"delete", "", "limitranges", "", false},
	{"update", "tenancy.warren.dev", "subnamespaces", "status", false},
	{"bind", "rbac.authorization.k8s.io", "clusterroles", "", false},
	{"escalate", "rbac.authorization.k8s.io", "roles", "", false},
	{"create", "example.com", "widgets", "", false},
}

// everywhere are requests about the whole cluster. No tenant's people may do any of them.
var everywhere = []request{
	{action: action{verb: "list", resource: "pods"}},
	{action: action{verb: "list", resource: "namespaces"}},
	{action: action{verb: "get", resource: "nodes"}, name: "n"},
	{action: action{verb: "create", group: "rbac.authorization.k8s.io", resource: "clusterrolebindings"}},
	{action: action{verb: "patch", group: "rbac.authorization.k8s.io", resource: "clusterroles"}, name: "warren:sudo:t00"},
	{action: action{verb: "list", group: "tenancy.warren.dev", resource: "lnamespaces"}},
	{action: action{verb: "create", group: "tenancy.warren.dev", resource: "lnamespaces"}},
	{action: action{verb: "impersonate", resource: "groups"}, name: "system:masters"},
	{action: action{verb: "impersonate", resource: "users"}, name: "admin"},
}

// question is whether somebody may do something, without sudo or with sudo of a tenant.
type question struct {
	who who
	// as is the user to impersonate, tenant the tenant whose sudoers' group is impersonated; both are empty without sudo.
	as, tenant string
	request    request
}

// answer is the answer to a question: with sudo, whether the user and the group may be impersonated, and whether the request is allowed
// then.
type answer struct{ user, group, request bool }

// yes says whether the API server would do what the question asks for.
func (q question) yes(a answer) bool { return a.request && (q.as == "" || a.user && a.group) }

// asked is the user whom the authorizer sees, after any impersonation.
func (q question) asked() who {
	if q.as == "" {
		return q.who
	}
	return who{q.as, []string{sudoersOf(q.tenant)}}
}

// question draws a question. Most of those who ask are listed by the tenant that it is about.
func (p population) question(r *rand.Rand, m model) question {
	name := pick(r, p.tenants)
	q := question{who: p.anyone(r), request: p.request(r, name)}
	says := m.tenants[name]
	if listed := slices.Concat(says.Users, says.Managers, says.Sudoers, says.Sudoers); len(listed) > 0 && r.IntN(4) > 0 {
		q.who = p.somebody(r, pick(r, listed))
	}
	if r.IntN(2) == 0 {
		return q
	}
	q.tenant = name
	switch n := r.IntN(10); {
	case n < 4:
		q.as = q.who.user
	case n < 8:
		q.as = sudoUserOf(name)
	case n == 8:
		q.as = sudoUserOf(pick(r, p.tenants))
	default:
		q.as = p.anyone(r).user
	}
	return q
}

// request draws what is asked for: mostly something in the tree of that tenant.
func (p population) request(r *rand.Rand, tenant string) request {
	switch n := r.IntN(20); {
	case n == 0:
		return pick(r, everywhere)
	case n < 4:
		verb, subresource := pick(r, []string{"get", "update", "patch", "delete"}), pick(r, []string{"", "", "", "status"})
		return request{action: action{verb: verb, group: "tenancy.warren.dev", resource: "lnamespaces", subresource: subresource}, name: tenant}
	}
	a := pick(r, actions)
	namespace := pick(r, p.trees[tenant])
	switch r.IntN(10) {
	case 0:
		namespace = pick(r, p.trees[pick(r, p.tenants)])
	case 1:
		namespace = pick(r, p.outside)
	}
	if a.resource == "namespaces" {
		return request{a, namespace, namespace}
	}
	return request{action: a, namespace: namespace}
}

// answer is the model's answer.
func (m model) answer(q question) answer {
	a := answer{request: m.allows(q.asked(), q.request)}
	if q.as != "" {
		a.user, a.group = m.becomesUser(q.who, q.as), m.becomesSudoer(q.who, q.tenant)
	}
	return a
}

// ask gets the answer of the API server's authorizer. Impersonation is a right like others; it decides who has sudo.
func ask(ctx context.Context, w *devcluster.World, q question) (a answer, err error) {
	if a.request, err = may(ctx, w, q.asked(), q.request); err != nil || q.as == "" {
		return a, err
	}
	user := request{action: action{verb: "impersonate", resource: "users"}, name: q.as}
	if namespace, ok := namespaceOf(q.as); ok {
		user.resource, user.namespace = "serviceaccounts", namespace
		user.name = strings.TrimPrefix(q.as, serviceAccountName(namespace, ""))
	}
	if a.user, err = may(ctx, w, q.who, user); err != nil {
		return a, err
	}
	a.group, err = may(ctx, w, q.who, request{action: action{verb: "impersonate", resource: "groups"}, name: sudoersOf(q.tenant)})
	return a, err
}

func may(ctx context.Context, w *devcluster.World, as who, r request) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: as.user, Groups: append(slices.Clone(as.groups), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace, Name: r.name,
		},
	}}
	if err := w.Admin().Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %q may %s: %w", as, r, err)
	}
	if problem := review.Status.EvaluationError; problem != "" {
		return false, fmt.Errorf("asking whether %q may %s: %s", as, r, problem)
	}
	return review.Status.Allowed, nil
}

// String is how a failure names it: `get secrets in t01-a`.
func (r request) String() string {
	text := strings.TrimSpace(strings.Join([]string{r.verb, strings.Trim(r.resource+"/"+r.subresource, "/"), r.name}, " "))
	if r.namespace == "" {
		return text + " in the cluster"
	}
	return text + " in " + r.namespace
}

// String is how a failure names the question.
func (q question) String() string {
	text := fmt.Sprintf("%q in groups %q: %s", q.who.user, q.who.groups, q.request)
	if q.as != "" {
		text += fmt.Sprintf(", as %q with %s", q.as, sudoersOf(q.tenant))
	}
	return text
}
