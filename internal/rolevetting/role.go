package rolevetting

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Role is a ClusterRole with all ClusterRoles that are aggregated into it.
type Role struct {
	Name  string
	UID   types.UID
	Rules []rbacv1.PolicyRule
	// Contributors are aggregated into the role, directly or through each other, sorted by name.
	Contributors []Contributor
}

// Contributor is a ClusterRole that is aggregated into another.
type Contributor struct {
	Name string
	// Aggregated reports that the contributor's own rules are aggregated from others in turn.
	Aggregated bool
	Rules      []rbacv1.PolicyRule
}

// ContributorNames returns the names of the contributors, sorted.
func (r *Role) ContributorNames() []string {
	names := make([]string, 0, len(r.Contributors))
	for _, c := range r.Contributors {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// Pending returns the name of a contributor whose rights have not all arrived in the role yet; "" when all have. The controller
// manager aggregates rules a moment after a change.
func (r *Role) Pending() string {
	held := byAction(Rights(r.Rules))
	for _, c := range r.Contributors {
		for _, right := range Rights(c.Rules) {
			have, ok := held[right.actionName()]
			if _, missing := right.without(have); !ok || missing {
				return c.Name
			}
		}
	}
	return ""
}

// originsOf returns the contributors in whose own rules a right was written. If there are none, it returns those that aggregate the right
// from others, and the role itself if no contributor has the right.
func (r *Role) originsOf(right Right) []string {
	var written, passed []string
	for _, c := range r.Contributors {
		switch {
		case !rulesGrant(c.Rules, right):
		case c.Aggregated:
			passed = append(passed, c.Name)
		default:
			written = append(written, c.Name)
		}
	}
	for _, names := range [][]string{written, passed} {
		if len(names) > 0 {
			return names
		}
	}
	return []string{r.Name}
}

// rulesGrant reports whether rules grant a right, or a part of it.
func rulesGrant(rules []rbacv1.PolicyRule, right Right) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		if !slices.Contains(splitActions(rule), right.actionName()) {
			return false
		}
		switch {
		case len(rule.ResourceNames) == 0:
			return true
		case len(right.ResourceNames) == 0: // the right holds for every name, so another rule grants it
			return false
		}
		return slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return slices.Contains(right.ResourceNames, name) })
	})
}

func byAction(rights []Right) map[action]Right {
	all := make(map[action]Right, len(rights))
	for _, right := range rights {
		all[right.actionName()] = right
	}
	return all
}
