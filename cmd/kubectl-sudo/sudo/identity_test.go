package sudo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
)

func rule(verb, group, resource string, names ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

// The rules are those of docs/behaviour/access.md 2.4, as a SelfSubjectRulesReview lists them.
func TestIdentity(t *testing.T) {
	const constrained, authentication = "impersonate:user-info", "authentication.k8s.io"
	legacySelf := rule("impersonate", "", "users", "bob")
	legacyGroup := rule("impersonate", "", "groups", "payments-sudoers")
	legacyNobody := rule("impersonate", "", "users", "warren:sudo:payments")
	legacyReason := rule("impersonate", authentication, "userextras/tenancy.warren.dev/reason")
	newSelf := rule(constrained, authentication, "users", "bob")
	newGroup := rule(constrained, authentication, "groups", "payments-sudoers")
	newNobody := rule(constrained, authentication, "users", "warren:sudo:payments")
	everybody := rule("create", "authorization.k8s.io", "selfsubjectrulesreviews")

	type verdict struct {
		tenants                         []string
		sudoer, everywhere, constrained bool
		as                              string
	}
	cases := map[string]struct {
		rules []authorizationv1.ResourceRule
		want  verdict
	}{
		"nobody":    {nil, verdict{as: "warren:sudo:payments"}},
		"no sudoer": {[]authorizationv1.ResourceRule{everybody, legacySelf, legacyReason}, verdict{as: "warren:sudo:payments"}},
		"Legacy, a user": {[]authorizationv1.ResourceRule{everybody, legacySelf, legacyGroup, legacyReason},
			verdict{tenants: []string{"payments"}, sudoer: true, as: "bob"}},
		"Legacy, of a group": {[]authorizationv1.ResourceRule{legacyGroup, legacyNobody, legacyReason},
			verdict{tenants: []string{"payments"}, sudoer: true, as: "warren:sudo:payments"}},
		"Constrained, a user": {[]authorizationv1.ResourceRule{newSelf, newGroup}, verdict{tenants: []string{"payments"}, sudoer: true,
			constrained: true, as: "bob"}},
		"Constrained, of a group": {[]authorizationv1.ResourceRule{newGroup, newNobody},
			verdict{tenants: []string{"payments"}, sudoer: true, constrained: true, as: "warren:sudo:payments"}},
		"while the mode changes": {[]authorizationv1.ResourceRule{legacySelf, newSelf, legacyGroup, newGroup},
			verdict{tenants: []string{"payments"}, sudoer: true, constrained: true, as: "bob"}},
		"the forms are not mixed": {[]authorizationv1.ResourceRule{legacySelf, newGroup, newNobody},
			verdict{tenants: []string{"payments"}, sudoer: true, constrained: true, as: "warren:sudo:payments"}},
		"in two tenants": {[]authorizationv1.ResourceRule{rule("impersonate", "", "groups", "shop-sudoers"), legacySelf, legacyGroup},
			verdict{tenants: []string{"payments", "shop"}, sudoer: true, as: "bob"}},
		"of another tenant": {[]authorizationv1.ResourceRule{legacySelf, rule("impersonate", "", "groups", "shop-sudoers")},
			verdict{tenants: []string{"shop"}, as: "warren:sudo:payments"}},
		"of other groups": {[]authorizationv1.ResourceRule{legacySelf, rule("impersonate", "", "groups", "admins", "-sudoers", "sudoers-x")},
			verdict{as: "warren:sudo:payments"}},
		"other verb": {[]authorizationv1.ResourceRule{rule("get", "", "groups", "payments-sudoers")},
			verdict{as: "warren:sudo:payments"}},
		"other API group": {[]authorizationv1.ResourceRule{rule("impersonate", authentication, "groups", "payments-sudoers")},
			verdict{as: "warren:sudo:payments"}},
		"verb on the object": {[]authorizationv1.ResourceRule{rule("impersonate-on:user-info:get", "", "groups", "payments-sudoers")},
			verdict{as: "warren:sudo:payments"}},
		"a cluster admin": {[]authorizationv1.ResourceRule{rule("*", "*", "*")},
			verdict{sudoer: true, everywhere: true, constrained: true, as: "bob"}},
		"anybody but oneself": {[]authorizationv1.ResourceRule{rule("impersonate", "", "groups")},
			verdict{sudoer: true, everywhere: true, as: "warren:sudo:payments"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			me := identityOf("bob", c.rules)
			got := verdict{me.sudoTenants(), me.isSudoerOf("payments"), me.isSudoerEverywhere(), me.constrainedIn("payments"),
				me.impersonatedUser("payments")}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
