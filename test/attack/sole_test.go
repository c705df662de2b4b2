package attack_test

import (
	"slices"
	"strings"
)

// soleRow tries to forge the pair of a tenant that has only one person.
var soleRow = row{
	name: "SEC-O47 warren:sole:shop:zoe that allows to impersonate another user or group, or any user, or a verb on another LNamespace, " +
		"on all, or delete: refused; SEC-O47 its binding with subject bob, zoe and bob, zoe and a Group, or Group zoe, or with another " +
		"role: refused; SEC-O47 the names warren:sole:shop:system:admin, warren:sole:zoe and warren:sole:shop: are refused", tries: []try{
		refused(op, "may let USER become the group",
			create("clusterrole warren:sole:shop:zoe", impersonating("users", "bob")),
			create("clusterrole warren:sole:shop:zoe", impersonating("users", "shop")),
			create("clusterrole warren:sole:shop:zoe", impersonating("users", "warren:sudo:shop")),
			create("clusterrole warren:sole:shop:system:admin", impersonating("users", "system:admin")),
			create("clusterrole warren:sole:shop:zoe", impersonating("groups", "payments-sudoers")),
			create("clusterrole warren:sole:shop:zoe", impersonating("groups", "zoe-sudoers")),
			create("clusterrole warren:sole:shop:zoe", rule(`apiGroups: [""], resources: [users], verbs: [impersonate]`)),
			create("clusterrole warren:sole:shop:zoe", rule(`apiGroups: [$D], resources: [lnamespaces], resourceNames: [payments], verbs: [get]`)),
			create("clusterrole warren:sole:shop:zoe", rule(`apiGroups: [$D], resources: [lnamespaces], resourceNames: [shop], verbs: [delete]`)),
			create("clusterrole warren:sole:shop:zoe", rule(`apiGroups: [$D], resources: [lnamespaces], verbs: [get]`))),
		refused(op, "has USER as its one subject",
			create("clusterrolebinding warren:sole:shop:zoe", binding("warren:sole:shop:zoe", user("bob"))),
			create("clusterrolebinding warren:sole:shop:zoe", binding("warren:sole:shop:zoe", user("zoe"), user("bob"))),
			create("clusterrolebinding warren:sole:shop:zoe", binding("warren:sole:shop:zoe", user("zoe"), group("shop-sudoers"))),
			create("clusterrolebinding warren:sole:shop:zoe", binding("warren:sole:shop:zoe", group("zoe")))),
		refused(op, "binds the ClusterRole of its own name",
			create("clusterrolebinding warren:sole:shop:zoe", binding("warren:self:zoe", user("zoe")))),
		refused(op, "may not write",
			create("clusterrole warren:sole:zoe", impersonating("users", "zoe")),
			create("clusterrole warren:sole:shop:", impersonating("users", "zoe"))),
	}}

// withoutSudoUser returns the rules of sudo, each of which begins a line, without those for the user warren:sudo:TENANT.
func withoutSudoUser(sudo string) string {
	lines := slices.DeleteFunc(strings.Split(sudo, "\n"), func(line string) bool { return strings.Contains(line, "warren:sudo:") })
	return strings.Join(lines, "\n")
}
