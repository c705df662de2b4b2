package attack_test

import (
	"fmt"
	"strings"
)

// The rules of access objects, from docs/behaviour/access.md, section 2.4. %[1]s is the user or the tenant.
const (
	legacySelf      = `{apiGroups: [""], resources: [users], resourceNames: [%[1]q], verbs: [impersonate]}`
	constrainedSelf = `{apiGroups: [authentication.k8s.io], resources: [users], resourceNames: [%[1]q], verbs: ["impersonate:user-info"]}`
	legacySudo      = `{apiGroups: [""], resources: [groups], resourceNames: [%[1]s-sudoers], verbs: [impersonate]},
		{apiGroups: [""], resources: [users], resourceNames: ["warren:sudo:%[1]s"], verbs: [impersonate]},
		{apiGroups: [authentication.k8s.io], resources: [userextras/$D/reason], verbs: [impersonate]}`
	constrainedSudo = `{apiGroups: [authentication.k8s.io], resources: [groups], resourceNames: [%[1]s-sudoers],
		 verbs: ["impersonate:user-info"]},
		{apiGroups: [authentication.k8s.io], resources: [users], resourceNames: ["warren:sudo:%[1]s"], verbs: ["impersonate:user-info"]},
		{apiGroups: [authentication.k8s.io], resources: [userextras/$D/reason], verbs: ["impersonate:user-info"]},
		{apiGroups: [$D], resources: [lnamespaces], resourceNames: [%[1]s],
		 verbs: ["impersonate-on:user-info:get", "impersonate-on:user-info:update", "impersonate-on:user-info:patch"]},
		{apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews, selfsubjectrulesreviews],
		 verbs: ["impersonate-on:user-info:create"]},
		{apiGroups: [authentication.k8s.io], resources: [selfsubjectreviews], verbs: ["impersonate-on:user-info:create"]},
		{nonResourceURLs: [/api, /api/*, /apis, /apis/*, /openapi, /openapi/*, /version, /version/], verbs: ["impersonate-on:user-info:get"]}`
	edit = `{apiGroups: [$D], resources: [lnamespaces], resourceNames: [%[1]s], verbs: [get, update, patch]}`
)

// awkward are users whose names are no valid names of RBAC objects, or unusual ones.
var awkward = []string{"https://idp/#4~7%", "..", "Zoë Müller", "a:b", strings.Repeat("u", 256)}

// inName returns a user's name as it is written in the name of an access object.
func inName(user string) string {
	for _, step := range [][2]string{{"~", "~0"}, {"/", "~1"}, {"%", "~2"}} {
		user = strings.ReplaceAll(user, step[0], step[1])
	}
	return user
}

// accessObjects has the operator write the access objects of a tenant and of the awkward users. The parameter form names the form of
// sudo.
func accessObjects(form, self, sudo string) []try {
	var requests []request
	for _, name := range awkward {
		name += form // so that each form has users of its own
		target := "clusterrole warren:self:" + inName(name)
		requests = append(requests,
			create(target, marked("access: self", `{rules: `+fmt.Sprintf(self, name)+`}`)),
			create(strings.Replace(target, "role", "rolebinding", 1), marked("access: self", binding("warren:self:"+inName(name), user(name)))))
	}
	tenant := "tenant-" + form
	for _, name := range awkward {
		pair := "warren:sole:" + tenant + ":" + inName(name)
		rules := strings.Trim(fmt.Sprintf(self, name), "[]") + ", " + fmt.Sprintf(withoutSudoUser(sudo)+", "+edit, tenant)
		requests = append(requests, create("clusterrole "+pair, markedOf("sole", tenant, `{rules: [`+rules+`]}`)),
			create("clusterrolebinding "+pair, markedOf("sole", tenant, binding(pair, user(name)))))
	}
	requests = append(requests,
		create("clusterrole warren:sudo:"+tenant, markedOf("sudo", tenant, `{rules: [`+fmt.Sprintf(sudo, tenant)+`]}`)),
		create("clusterrolebinding warren:sudo:"+tenant, markedOf("sudo", tenant, binding("warren:sudo:"+tenant, user("bob"),
			group("pay-oncall"), `{kind: ServiceAccount, namespace: ci, name: deployer}`))),
		create("clusterrole warren:edit:"+tenant, markedOf("edit", tenant, `{rules: [`+fmt.Sprintf(edit, tenant)+`]}`)),
		create("clusterrolebinding warren:edit:"+tenant, markedOf("edit", tenant, binding("warren:edit:"+tenant, user("mia"),
			group(tenant+"-sudoers")))),
		create("rolebinding payments/warren:sudo-"+form, marked("access: sudo", binding("warren:impersonate-on", user("bob")))))
	return []try{allowed(op, requests...)}
}

// markedOf returns body with the labels of an access object of a tenant.
func markedOf(access, tenant, body string) string {
	return marked("access: "+access+", $D/tenant: "+tenant, body)
}

// unlabelledPairs are access objects as the operator writes them, but for the labels by which it finds them again.
func unlabelledPairs() []request {
	pair, zoe := "warren:sole:shop:zoe", user("zoe")
	editing := rule(`apiGroups: [$D], resources: [lnamespaces], resourceNames: [shop], verbs: [get]`)
	return []request{
		create("clusterrolebinding "+pair, binding(pair, zoe)),
		create("clusterrolebinding "+pair, marked("access: sole", binding(pair, zoe))),
		create("clusterrolebinding "+pair, marked("tenant: shop", binding(pair, zoe))),
		create("clusterrolebinding "+pair, markedOf("sole", "payments", binding(pair, zoe))),
		create("clusterrolebinding "+pair, markedOf("edit", "shop", binding(pair, zoe))),
		create("clusterrolebinding warren:sudo:shop", binding("warren:sudo:shop", zoe)),
		create("clusterrolebinding warren:edit:shop", binding("warren:edit:shop", zoe)),
		create("clusterrolebinding warren:self:zoe", binding("warren:self:zoe", zoe)),
		create("clusterrolebinding warren:self:zoe", markedOf("self", "shop", binding("warren:self:zoe", zoe))),
		create("clusterrole "+pair, editing),
		create("clusterrole warren:edit:shop", editing),
		create("clusterrole warren:self:zoe", impersonating("users", "zoe")),
		put("clusterrolebinding warren:edit:payments", `{metadata: {labels: {$D/tenant: shop}}}`),
	}
}
