package grants

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Forms are the forms of impersonation that the rules of sudo contain: one, or both during a change of the mode. The
// API server tries the constrained form first, and the legacy form where the constrained one doesn't allow a request.
type Forms struct{ Legacy, Constrained bool }

// FormsOf returns the one form of a mode.
func FormsOf(mode v1alpha1.SudoMode) Forms {
	return Forms{Legacy: mode != v1alpha1.SudoConstrained, Constrained: mode == v1alpha1.SudoConstrained}
}

// Or returns the forms that f or other has.
func (f Forms) Or(other Forms) Forms {
	return Forms{Legacy: f.Legacy || other.Legacy, Constrained: f.Constrained || other.Constrained}
}

// FormsIn returns the forms that the rules of an existing role contain.
func FormsIn(role *rbacv1.ClusterRole) Forms {
	var f Forms
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			f.Legacy = f.Legacy || verb == legacyVerb
			f.Constrained = f.Constrained || strings.HasPrefix(verb, legacyVerb+":")
		}
	}
	return f
}

// Verbs of both forms. onVerb is followed by the verb of the request that the sudoer makes as the impersonated user.
const (
	legacyVerb      = "impersonate"
	constrainedVerb = "impersonate:user-info"
	onVerb          = "impersonate-on:user-info:"
)

// reasonExtra is the user-extra key in which a sudoer may give a reason; the API server writes it to the audit log.
const reasonExtra = "userextras/" + v1alpha1.Domain + "/reason"

// impersonateRules returns rules that let their holder impersonate exactly one user or group. A rule without a resource
// name would let its holder become anyone.
func (f Forms) impersonateRules(resource, name string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	add := func(group, verb string) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name},
			Verbs: []string{verb}})
	}
	if f.Legacy {
		add("", legacyVerb)
	}
	if f.Constrained {
		add(authenticationv1.GroupName, constrainedVerb)
	}
	return rules
}

// sudoRules returns the rules by which sudoers impersonate the group of their tenant, and SudoUser if a sudoer is not a
// User (needsUser).
func (f Forms) sudoRules(tenant string, needsUser bool) []rbacv1.PolicyRule {
	become := func(one Forms, verb string) []rbacv1.PolicyRule {
		rules := one.impersonateRules("groups", v1alpha1.SudoersGroup(tenant))
		if needsUser {
			rules = append(rules, one.impersonateRules("users", SudoUser(tenant))...)
		}
		return append(rules, rbacv1.PolicyRule{
			APIGroups: []string{authenticationv1.GroupName}, Resources: []string{reasonExtra}, Verbs: []string{verb},
		})
	}
	var rules []rbacv1.PolicyRule
	if f.Legacy {
		rules = become(Forms{Legacy: true}, legacyVerb)
	}
	if f.Constrained {
		rules = append(append(rules, become(Forms{Constrained: true}, constrainedVerb)...), onNothingNamespaced(tenant)...)
	}
	return rules
}

// onNothingNamespaced returns the rules for requests outside of namespaces that sudoers may make in the constrained
// form: those for the LNamespace of the tenant, and those without which kubectl itself fails. RoleBindings in the tree
// allow the requests inside its namespaces.
func onNothingNamespaced(tenant string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.Domain}, Resources: []string{"lnamespaces"}, ResourceNames: []string{tenant},
			Verbs: []string{onVerb + "get", onVerb + "update", onVerb + "patch"}},
		{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
			Verbs: []string{onVerb + "create"}},
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{onVerb + "create"}},
		{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"},
			Verbs: []string{onVerb + "get"}},
	}
}
