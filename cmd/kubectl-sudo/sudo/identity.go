package sudo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// identity is who somebody is, and whom they may become: by the rules of legacy and of constrained impersonation, which the API
// server doesn't mix.
type identity struct {
	user                string
	legacy, constrained become
}

// become is whom one may become by one form of impersonation.
type become struct{ users, groups names }

// names are those of a rule, or all.
type names struct {
	some sets.Set[string]
	all  bool
}

func (n names) has(name string) bool { return n.all || n.some.Has(name) }

// The two forms: verb, and API group of the resources users and groups.
const (
	legacyVerb, legacyGroup           = "impersonate", ""
	constrainedVerb, constrainedGroup = "impersonate:user-info", "authentication.k8s.io"
)

// identifyUser asks the API server who it takes the user for and what that user may.
func (c *call) identifyUser(ctx context.Context) (identity, error) {
	api, err := c.connect(nobody)
	if err != nil {
		return identity{}, err
	}
	self := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, self); err != nil {
		return identity{}, fmt.Errorf("asking the API server who you are: %w", err)
	}
	namespace, _, err := c.targetNamespace()
	if err != nil {
		return identity{}, err
	}
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := api.Create(ctx, rules); err != nil {
		return identity{}, fmt.Errorf("asking the API server what you may do: %w", err)
	}
	return identityOf(self.Status.UserInfo.Username, rules.Status.ResourceRules), nil
}

// identityOf reads the rules of a SelfSubjectRulesReview. Those of other kinds are passed over.
func identityOf(user string, rules []authorizationv1.ResourceRule) identity {
	return identity{
		user:        user,
		legacy:      become{users: grantedNames(rules, legacyVerb, legacyGroup, "users"), groups: grantedNames(rules, legacyVerb, legacyGroup, "groups")},
		constrained: become{users: grantedNames(rules, constrainedVerb, constrainedGroup, "users"), groups: grantedNames(rules, constrainedVerb, constrainedGroup, "groups")},
	}
}

// grantedNames returns the objects of a resource on which the rules allow a verb. A rule without resourceNames allows all.
func grantedNames(rules []authorizationv1.ResourceRule, verb, group, resource string) names {
	n := names{some: sets.New[string]()}
	for _, rule := range rules {
		if !says(rule.Verbs, verb) || !says(rule.APIGroups, group) || !says(rule.Resources, resource) {
			continue
		}
		n.some.Insert(rule.ResourceNames...)
		n.all = n.all || len(rule.ResourceNames) == 0
	}
	return n
}

func says(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}

// sudoTenants returns those in which one may, in alphabetical order. For who may become any group they are not all.
func (i identity) sudoTenants() []string {
	var tenants []string
	for group := range i.legacy.groups.some.Union(i.constrained.groups.some) {
		if tenant, ok := strings.CutSuffix(group, v1alpha1.SudoersSuffix); ok && tenant != "" {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	return tenants
}

// isSudoerEverywhere says that one may become any group, as cluster admins may.
func (i identity) isSudoerEverywhere() bool { return i.legacy.groups.all || i.constrained.groups.all }

// isSudoerOf says whether one may become the tenant's group.
func (i identity) isSudoerOf(tenant string) bool {
	group := v1alpha1.SudoersGroup(tenant)
	return i.legacy.groups.has(group) || i.constrained.groups.has(group)
}

// impersonatedUser returns the user to become together with the tenant's group: oneself if one may, else the powerless user that stands for
// sudoers who are no users. ACC Dec1.
func (i identity) impersonatedUser(tenant string) string {
	group := v1alpha1.SudoersGroup(tenant)
	for _, form := range []become{i.legacy, i.constrained} {
		if form.groups.has(group) && form.users.has(i.user) {
			return i.user
		}
	}
	return grants.SudoUser(tenant)
}

// constrainedIn says whether the API server looks at each request of sudo in the tenant by itself.
func (i identity) constrainedIn(tenant string) bool {
	return i.constrained.groups.has(v1alpha1.SudoersGroup(tenant))
}
