package model_test

import (
	"slices"
	"strings"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// who is a user as an authorizer sees one: the name and the groups.
type who struct {
	user   string
	groups []string
}

// action is something that can be done to a kind of object. Users says whether a tenant's users may do it in its tree, as
// ClusterRole admin lets them; a sudoer with sudo may do everything there.
type action struct {
	verb, group, resource, subresource string
	users                              bool
}

// request is an action on an object in a namespace, or on a cluster-wide one if namespace is empty.
type request struct {
	action
	namespace, name string
}

// model answers as docs/behaviour/access.md says, from the LNamespaces alone. Nothing in it comes from the operator's code.
type model struct {
	tenants map[string]v1alpha1.LNamespaceSpec
	// tenantOf names the tenant in whose tree a namespace is; others are missing.
	tenantOf map[string]string
}

// allows reports whether somebody may do what the request asks for. With sudo, w has the sudoers' group.
func (m model) allows(w who, r request) bool {
	if r.namespace != "" {
		name, inTree := m.tenantOf[r.namespace]
		return inTree && (slices.Contains(w.groups, sudoersOf(name)) || r.users && lists(m.tenants[name].Users, w))
	}
	tenant, exists := m.tenants[r.name]
	edits := r.verb == "get" || r.verb == "update" || r.verb == "patch"
	return exists && edits && r.group == "tenancy.warren.dev" && r.resource == "lnamespaces" && r.subresource == "" &&
		(slices.Contains(w.groups, sudoersOf(r.name)) && groupEdits(tenant) || lists(tenant.Managers, w))
}

// groupEdits reports whether the group of sudoers may edit the LNamespace. A tenant without managers and sudoers has no binding for it, and
// a sole pair gives the group nothing (ACC-R20).
func groupEdits(tenant v1alpha1.LNamespaceSpec) bool {
	return len(tenant.Managers)+len(tenant.Sudoers) > 0 && !isSole(tenant)
}

// isSole reports whether one user is the only manager and the only sudoer of a tenant. That user's sole pair gives the group nothing: with
// sudo the user is still the user, who may edit the LNamespace (ACC-R20).
func isSole(tenant v1alpha1.LNamespaceSpec) bool {
	return len(tenant.Managers) == 1 && slices.Equal(tenant.Managers, tenant.Sudoers) && tenant.Managers[0].Kind == v1alpha1.SubjectUser
}

// becomesUser says whether somebody may act as that user.
func (m model) becomesUser(w who, user string) bool {
	if name, ok := strings.CutPrefix(user, sudoUserOf("")); ok {
		sudoers := m.tenants[name].Sudoers
		return lists(sudoers, w) && slices.ContainsFunc(sudoers, func(s v1alpha1.Subject) bool { return s.Kind != v1alpha1.SubjectUser })
	}
	if namespace, ok := namespaceOf(user); ok {
		// ClusterRole admin gives this right in the namespace of the service account; Warren does not.
		return m.allows(w, request{action: action{verb: "impersonate", resource: "serviceaccounts", users: true}, namespace: namespace})
	}
	if user != w.user {
		return false
	}
	for _, tenant := range m.tenants {
		if slices.Contains(tenant.Sudoers, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: user}) {
			return true
		}
	}
	return false
}

// becomesSudoer says whether somebody may act as a member of the group of a tenant's sudoers.
func (m model) becomesSudoer(w who, tenant string) bool { return lists(m.tenants[tenant].Sudoers, w) }

// lists says whether one of the subjects is that person, or a group of theirs.
func lists(subjects []v1alpha1.Subject, w who) bool {
	return slices.ContainsFunc(subjects, func(s v1alpha1.Subject) bool {
		switch s.Kind {
		case v1alpha1.SubjectUser:
			return s.Name == w.user
		case v1alpha1.SubjectGroup:
			return slices.Contains(w.groups, s.Name)
		}
		return serviceAccountName(s.Namespace, s.Name) == w.user
	})
}

func sudoersOf(tenant string) string { return tenant + "-sudoers" }

func sudoUserOf(tenant string) string { return "warren:sudo:" + tenant }

func serviceAccountName(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// namespaceOf is the namespace of a user who is a service account.
func namespaceOf(user string) (string, bool) {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, _, _ := strings.Cut(account, ":")
	return namespace, ok
}
