package rights

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// reach states whether a ClusterRoleBinding grants rights in a tenant, and in which of its namespaces.
type reach struct {
	any        bool
	namespaces []string // of the tree, in which it grants rights
}

// reachIntoTree returns where a ClusterRoleBinding grants rights in the tree: on objects in its namespaces, on the
// namespaces, on the LNamespace, or to impersonate one of its people. If the binding's role can't be read, it counts as
// one that grants some.
func (s *survey) reachIntoTree(b binding) reach {
	found := reach{any: b.opaque}
	for _, rule := range b.rules {
		for _, resource := range rule.Resources {
			for _, group := range rule.APIGroups {
				one := s.reachOfRule(rule, group, resource)
				found.any = found.any || one.any
				for _, namespace := range one.namespaces {
					addOnceTo(&found.namespaces, namespace)
				}
			}
		}
	}
	return found
}

func (s *survey) reachOfRule(rule rbacv1.PolicyRule, group, resource string) reach {
	kind, _, _ := strings.Cut(resource, "/")
	named := func(names ...string) []string {
		if len(rule.ResourceNames) == 0 {
			return names
		}
		return slices.DeleteFunc(slices.Clone(names),
			func(name string) bool { return !slices.Contains(rule.ResourceNames, name) })
	}
	in := func(of string) bool { return group == of || group == rbacv1.APIGroupAll }
	switch {
	case kind == rbacv1.ResourceAll:
		return reach{true, s.tree}
	case kind == "namespaces" && in(""):
		names := named(s.tree...)
		return reach{len(names) > 0, names}
	case kind == "lnamespaces" && in(v1alpha1.GroupVersion.Group):
		return reach{any: len(named(s.tenant)) > 0}
	case (kind == "users" || kind == "groups") && (in("") || in(authenticationv1.GroupName)):
		return reach{any: allowsImpersonation(rule) && len(named(s.peopleToBecome(kind)...)) > 0}
	case s.isNamespaced(group, kind):
		return reach{true, s.tree}
	}
	return reach{}
}

// peopleToBecome returns the users or, for kind groups, the groups whose impersonation gives rights in the tree: those
// in the lists, and the sudo user or group of sudoers.
func (s *survey) peopleToBecome(kind string) []string {
	of := v1alpha1.SubjectUser
	names := []string{grants.SudoUser(s.tenant)}
	if kind == "groups" {
		of = v1alpha1.SubjectGroup
		names = []string{v1alpha1.SudoersGroup(s.tenant)}
	}
	for _, subject := range slices.Concat(s.spec.Users, s.spec.Managers, s.spec.Sudoers) {
		if subject.Kind == of {
			names = append(names, subject.Name)
		}
	}
	return names
}

func allowsImpersonation(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Verbs, func(verb string) bool {
		return verb == rbacv1.VerbAll || strings.HasPrefix(verb, "impersonate")
	})
}

// isNamespaced reports whether the API server has a namespaced resource of this name in the group, or in any group if
// group is "*".
func (s *survey) isNamespaced(group, resource string) bool {
	for served, namespaced := range s.namespaced {
		if namespaced && served.Resource == resource && (group == served.Group || group == rbacv1.APIGroupAll) {
			return true
		}
	}
	return false
}
