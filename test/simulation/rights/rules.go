package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// excessOf returns what a binding and the ClusterRole of its name give beyond docs/behaviour/access.md 2.4 in mode Legacy; "" if nothing.
// There, the name of a pair decides its rules, and of a self or sole pair also its subject.
func excessOf(objects grants.Actual, binding *rbacv1.ClusterRoleBinding) string {
	role, _ := objects[grants.Key{Kind: "ClusterRole", Name: binding.Name}].(*rbacv1.ClusterRole)
	if role == nil || role.Labels[v1alpha1.LabelAccess] == "" {
		return "" // nothing is bound, or somebody else's role
	}
	parts := strings.SplitN(binding.Name, ":", 4) // warren:sudo:TENANT, warren:edit:TENANT, warren:self:USER or warren:sole:TENANT:USER
	kind, name, subject := parts[1], parts[2], parts[len(parts)-1]
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if what := resource + " " + verb; !slices.Contains(rulesOf(kind, name, subject), what+" "+strings.Join(rule.ResourceNames, ",")) {
					return fmt.Sprintf("%s allows %s of %q", role.Name, what, rule.ResourceNames)
				}
			}
		}
	}
	for _, s := range binding.Subjects {
		if (kind == "self" || kind == "sole") && (s.Kind != "User" || s.Name != subject) {
			return fmt.Sprintf("%s binds %s %s", binding.Name, s.Kind, s.Name)
		}
	}
	return ""
}

// rulesOf returns what the ClusterRole of a pair may allow, as "resource verb resourceName".
func rulesOf(kind, name, user string) []string {
	sudo := []string{"groups impersonate " + name + "-sudoers", "userextras/tenancy.warren.dev/reason impersonate "}
	edit := []string{"lnamespaces get " + name, "lnamespaces update " + name, "lnamespaces patch " + name}
	self := []string{"users impersonate " + user}
	return map[string][]string{
		"sudo": append(slices.Clone(sudo), "users impersonate warren:sudo:"+name), "edit": edit, "self": self,
		"sole": slices.Concat(sudo, edit, self),
	}[kind]
}

// checkRules: no binding of the operator, together with its role, gives more than its name says.
func (h *history) checkRules(invariant string) {
	for _, object := range h.server.objects {
		if binding, is := object.(*rbacv1.ClusterRoleBinding); is && h.server.ours[binding.UID] {
			if excess := excessOf(h.server.objects, binding); excess != "" {
				fail(invariant, "%s", excess)
			}
		}
	}
}

// selfIn returns the names of the bindings by which users may impersonate themselves.
func selfIn(objects grants.Actual) (names []string) {
	for _, object := range objects {
		if binding, is := object.(*rbacv1.ClusterRoleBinding); is && strings.HasPrefix(binding.Name, "warren:self:") {
			names = append(names, binding.Name)
		}
	}
	slices.Sort(names)
	return names
}

// selfOf returns the names that selfIn returns at the end: one for each User who is a sudoer, unless the only sudoer is the only manager.
func selfOf(tenants ...*v1alpha1.LNamespace) (names []string) {
	for _, t := range tenants {
		if t != nil && (len(t.Spec.Sudoers) != 1 || !slices.Equal(t.Spec.Managers, t.Spec.Sudoers)) {
			names = append(names, selfAllowedBy(t)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// selfAllowedBy returns the names that a tenant allows on the way: also an only sudoer who is the only manager may have one until the pair
// that replaces it stands.
func selfAllowedBy(t *v1alpha1.LNamespace) (names []string) {
	for _, sudoer := range t.Spec.Sudoers {
		if sudoer.Kind == v1alpha1.SubjectUser && t.DeletionTimestamp == nil {
			names = append(names, "warren:self:"+sudoer.Name)
		}
	}
	return names
}
