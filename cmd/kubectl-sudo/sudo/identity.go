package sudo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// identity is the user's name, and the users and groups that the user may impersonate: separately by legacy and by constrained
// impersonation, because the API server doesn't combine the two.
type identity struct {
	user                string
	legacy, constrained become
}

// become is the users and groups that the user may impersonate by one form of impersonation.
type become struct{ users, groups names }

// names are the resourceNames of RBAC rules, or all names.
type names struct {
	some sets.Set[string]
	all  bool
}

func (n names) has(name string) bool { return n.all || n.some.Has(name) }

// The two forms of impersonation: the verb, and the API group of the resources users and groups.
const (
	legacyVerb, legacyGroup           = "impersonate", ""
	constrainedVerb, constrainedGroup = "impersonate:user-info", "authentication.k8s.io"
)

// identifyUser asks the API server for the user's name and rules.
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

// checkImpersonation returns an error if a proxy in front of the API server drops the headers of impersonation: then kubectl would act with
// the user's own rights, and report only those. Every other problem is left to kubectl. For example, the API server refuses this review if
// impersonation is constrained to namespaces.
func (c *call) checkImpersonation(ctx context.Context, me identity, tenant string) error {
	group := v1alpha1.SudoersGroup(tenant)
	api, err := c.connect(rest.ImpersonationConfig{UserName: me.impersonatedUser(tenant), Groups: []string{group}})
	if err != nil {
		return err
	}
	self := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, self); err != nil || slices.Contains(self.Status.UserInfo.Groups, group) {
		return nil //nolint:nilerr // without an answer, kubectl itself shows what is wrong
	}
	return fmt.Errorf("a proxy in front of the API server drops the headers Impersonate-User and Impersonate-Group, so sudo has no effect "+
		"(the API server sees %s without group %s): use a kubeconfig that reaches the API server without this proxy",
		self.Status.UserInfo.Username, group)
}

// identityOf derives the identity from the rules of a SelfSubjectRulesReview. Rules that don't concern impersonation are ignored.
func identityOf(user string, rules []authorizationv1.ResourceRule) identity {
	return identity{
		user: user,
		legacy: become{users: grantedNames(rules, legacyVerb, legacyGroup, "users"),
			groups: grantedNames(rules, legacyVerb, legacyGroup, "groups")},
		constrained: become{users: grantedNames(rules, constrainedVerb, constrainedGroup, "users"), groups: grantedNames(rules, constrainedVerb,
			constrainedGroup, "groups")},
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

// sudoTenants returns the tenants whose groups of sudoers the user's rights name, in alphabetical order. A user who may impersonate any
// group may use sudo in other tenants too.
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

// isSudoerEverywhere reports whether the user may impersonate any group, as cluster admins may.
func (i identity) isSudoerEverywhere() bool { return i.legacy.groups.all || i.constrained.groups.all }

// isSudoerOf reports whether the user may impersonate the tenant's group of sudoers.
func (i identity) isSudoerOf(tenant string) bool {
	group := v1alpha1.SudoersGroup(tenant)
	return i.legacy.groups.has(group) || i.constrained.groups.has(group)
}

// impersonatedUser returns the user to impersonate together with the tenant's group: the user's own name if that is allowed. Otherwise it
// is warren:sudo:TENANT, a user without rights. The members of Groups, and the ServiceAccounts, in the list of sudoers impersonate that
// user (ACC Dec1).
func (i identity) impersonatedUser(tenant string) string {
	group := v1alpha1.SudoersGroup(tenant)
	for _, form := range []become{i.legacy, i.constrained} {
		if form.groups.has(group) && form.users.has(i.user) {
			return i.user
		}
	}
	return grants.SudoUser(tenant)
}

// constrainedIn reports whether the user may impersonate the tenant's group by constrained impersonation, for which the API server checks
// each request's verb and resource.
func (i identity) constrainedIn(tenant string) bool {
	return i.constrained.groups.has(v1alpha1.SudoersGroup(tenant))
}
