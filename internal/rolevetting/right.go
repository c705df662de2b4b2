// Package rolevetting compares the rights of one ClusterRole, which the users of every tenant hold, with a vetted list. The list holds the
// rights that somebody has reviewed and written down. The package names which rights are new and which are dangerous. It is pure: its
// callers, the operator and the command kubectl warren vet, read the cluster.
//
// A ClusterRole becomes a set of rights (right.go). A list is such a set, for one version of Kubernetes (list.go, lists.go). The
// comparison returns findings (compare.go).
package rolevetting

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is one verb on one resource.
type Right struct {
	APIGroup string `json:"apiGroup" yaml:"apiGroup"`
	// Resource may name a subresource: pods/exec.
	Resource string `json:"resource" yaml:"resource"`
	Verb     string `json:"verb" yaml:"verb"`
	// ResourceNames are sorted; none means that the right holds for every name.
	ResourceNames []string `json:"resourceNames,omitempty" yaml:"resourceNames,omitempty"`
}

// action is a right without names.
type action struct{ group, resource, verb string }

func (r Right) actionName() action { return action{r.APIGroup, r.Resource, r.Verb} }

// Rights returns the rules as sorted rights: one for each group, resource and verb, with the resource names of all rules together. Rules
// about URLs are left out, because they grant nothing where a RoleBinding binds the role, as it does for users.
func Rights(rules []rbacv1.PolicyRule) []Right {
	names := map[action]map[string]bool{} // nil: every name
	for _, rule := range rules {
		for _, a := range splitActions(rule) {
			before, known := names[a]
			switch {
			case len(rule.ResourceNames) == 0:
				names[a] = nil
				continue
			case known && before == nil:
				continue
			case !known:
				before = map[string]bool{}
				names[a] = before
			}
			for _, name := range rule.ResourceNames {
				before[name] = true
			}
		}
	}
	rights := make([]Right, 0, len(names))
	for a, only := range names {
		right := Right{APIGroup: a.group, Resource: a.resource, Verb: a.verb}
		if only != nil {
			right.ResourceNames = slices.Sorted(maps.Keys(only))
		}
		rights = append(rights, right)
	}
	slices.SortFunc(rights, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.APIGroup, b.APIGroup), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return rights
}

func splitActions(rule rbacv1.PolicyRule) []action {
	var all []action
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, action{group, resource, verb})
			}
		}
	}
	return all
}

// without returns the part of r that other, a right of the same action, doesn't grant. ok is false if nothing is left.
func (r Right) without(other Right) (rest Right, ok bool) {
	switch {
	case len(other.ResourceNames) == 0:
		return Right{}, false
	case len(r.ResourceNames) == 0:
		return r, true
	}
	rest = r
	rest.ResourceNames = slices.DeleteFunc(slices.Clone(r.ResourceNames), func(name string) bool {
		return slices.Contains(other.ResourceNames, name)
	})
	return rest, len(rest.ResourceNames) > 0
}

// String returns the right in the form of kubectl auth can-i, such as update namespaces or get deployments.apps/scale. Resource names
// follow.
func (r Right) String() string {
	text := r.Verb + " " + Qualified(r.APIGroup, r.Resource)
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	return text
}

// Qualified returns a resource with its group, as kubectl takes it: pods/exec, deployments.apps/scale.
func Qualified(group, resource string) string {
	name, subresource, isSub := strings.Cut(resource, "/")
	if group != "" {
		name += "." + group
	}
	if isSub {
		name += "/" + subresource
	}
	return name
}
