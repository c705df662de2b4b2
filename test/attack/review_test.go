package attack_test

import "k8s.io/client-go/rest"

// Attacks that people who wrote none of the defences thought of.

// becoming returns an actor that impersonates another user.
func becoming(by actor, name string, groups ...string) actor {
	return actor{user: by.user, as: rest.ImpersonationConfig{UserName: name, Groups: groups}}
}

const (
	owned   = `{metadata: {ownerReferences: [` + dangling + `]}}`
	held    = `{metadata: {finalizers: [example.com/held]}}`
	adopted = `{apiVersion: v1, kind: Namespace, metadata: {name: plain, annotations: {$D/adopt: eve}}}`
)

// tenantApplied sends LNamespace payments by server-side apply as field manager warren, which owns its limits and its finalizer: what the
// content leaves out is removed. See strewn.
func tenantApplied(content string, flags ...string) request {
	manifest := `{apiVersion: $D/v1alpha1, kind: LNamespace, ` + content + `}`
	return kubectl("lnamespace payments", manifest,
		append([]string{"apply", "--server-side", "--field-manager=warren", "--force-conflicts", "-f", "-"}, flags...)...)
}

var reviewRows = []row{
	{name: "SEC-N32 carol sets our keys on plain by a JSON patch of all labels, by server-side apply as field manager warren, or under " +
		"x. or my before our domain: refused; SEC-N32 she sets a key of a domain that only begins like ours: allowed", tries: []try{
		refused(carol, "may change these keys of a Namespace",
			jsonPatch("namespace plain", `[{op: replace, path: /metadata/labels, value: {kubernetes.io/metadata.name: plain, $D/type: root}}]`),
			jsonPatch("namespace plain", `[{op: add, path: /metadata/labels/$D~1parent, value: victim}]`),
			kubectl("namespace plain", adopted, "apply", "--server-side", "--field-manager=warren", "--force-conflicts", "-f", "-"),
			merge("namespace plain", notes("x.$D/adopt", "eve")),
			merge("namespace plain", notes("my$D/adopt", "eve"))),
		allowed(carol, merge("namespace pasture", notes("$D.example.com/adopt", "eve"))),
	}},
	{name: "SEC-N33 bob acts as himself with group system:masters, alone or beside payments-sudoers, with victim-sudoers, or as a " +
		"ServiceAccount of kube-system: RBAC refuses all; SEC-N33 alice acts as a ServiceAccount of payments with group payments-sudoers, " +
		"or mia as bob with it: RBAC refuses both", tries: []try{
		denied(becoming(bob, "bob", "system:masters"), list("secret pasture/*")),
		denied(becoming(bob, "bob", "payments-sudoers", "system:masters"), list("secret pasture/*")),
		denied(becoming(bob, "bob", "victim-sudoers"), list("secret pasture/*")),
		denied(becoming(bob, "system:serviceaccount:kube-system:namespace-controller"), list("secret pasture/*")),
		denied(becoming(alice, "system:serviceaccount:payments:default", "payments-sudoers"), list("secret pasture/*")),
		denied(becoming(mia, "bob", "payments-sudoers"), list("secret pasture/*")),
		allowed(bob, list("secret pay-web/*")),
	}},
	{name: "SEC-N34 alice creates an HC in victim or a plain namespace, a SubNamespace in victim, or an LNamespace: refused by RBAC; a " +
		"SubNamespace in pay-web: allowed", tries: []try{
		denied(alice,
			create("hierarchyconfiguration victim/hierarchy", `{spec: {parent: payments}}`),
			create("hierarchyconfiguration pasture/hierarchy", `{spec: {parent: payments}}`),
			create("subnamespace victim/vic-new", ``),
			create("lnamespace another", ``)),
		allowed(alice, create("subnamespace pay-web/pay-waits", ``)),
	}},
	{name: "SEC-N35 bob changes or removes a label of billing.namespaceLabels on pay-web, or changes it on payments: refused, the answer " +
		"names the key; by /status: refused, `not yours to write`", tries: []try{
		refused(bob, "refused: finance.example.com/cost-center",
			merge("namespace pay-web", ours("finance.example.com/cost-center", `"0"`)),
			merge("namespace pay-web", ours("finance.example.com/cost-center", "null")),
			kubectl("namespace payments", "", "label", "namespace", "payments", "--overwrite", "finance.example.com/cost-center=0")),
		refused(bob, "not yours to write", merge("namespace pay-web", ours("finance.example.com/cost-center", `"0"`), "status")),
	}},
	{name: "SEC-N36 carol, bob in pay-web, or a user who may write ClusterRoleBindings binds a group or user that sudoers become: " +
		"refused, `is what sudoers become`; so is op; SEC-N36 carol adds a second such group to a binding: refused; labels a binding that " +
		"has one, adds a user, or binds other names: allowed; cl may bind such a group", tries: []try{
		refused(carol, "subjects: Group future-sudoers is what sudoers become",
			create("rolebinding plain/waiting", binding("view", user("carol"), group("future-sudoers"))),
			create("rolebinding plain/waiting-*", binding("view", group("future-sudoers"))),
			merge("rolebinding plain/standing", `{subjects: [`+group("old-sudoers")+`, `+group("future-sudoers")+`]}`)),
		refused(carol, "subjects: User warren:sudo:future is what sudoers become",
			create("rolebinding plain/waiting", binding("view", user("warren:sudo:future")))),
		refused(bob, "subjects: Group payments-sudoers is what sudoers become",
			create("rolebinding pay-web/waiting", binding("view", group("payments-sudoers")))),
		refused(binder, "subjects: Group future-sudoers is what sudoers become",
			create("clusterrolebinding waiting", binding("view", group("future-sudoers")))),
		refused(op, "", create("rolebinding plain/waiting", binding("view", group("future-sudoers")))),
		allowed(carol,
			merge("rolebinding plain/standing", `{metadata: {labels: {tier: web}}}`),
			merge("rolebinding plain/standing", `{subjects: [`+group("old-sudoers")+`, `+user("carol")+`]}`),
			create("rolebinding plain/people", binding("view", group("sudoers"), user("x-sudoers")))),
		allowed(clara, create("clusterrolebinding waiting", binding("view", group("future-sudoers")))),
	}},
	{name: "SEC-C33 alice sets an owner that does not exist or a finalizer on warren:users, a copy of warren:sudoers or a copied Secret: " +
		"refused; on a ConfigMap of her own: allowed", tries: []try{
		refused(alice, "",
			merge("rolebinding payments/warren:users", owned), merge("rolebinding payments/warren:users", held),
			merge("rolebinding pay-web/warren:sudoers", owned), merge("rolebinding pay-web/warren:sudoers", held),
			merge("secret pay-web/s", owned), merge("secret pay-web/s", held),
			jsonPatch("secret pay-web/s", `[{op: add, path: /metadata/finalizers, value: [example.com/held]}]`)),
		allowed(alice,
			create("configmap pay-web/collected", owned),
			create("configmap pay-web/mine", ``),
			merge("configmap pay-web/mine", held), // first of all, else the garbage collector may be quicker
			merge("configmap pay-web/mine", owned),
			merge("configmap pay-web/mine", `{metadata: {finalizers: null}}`)),
	}},
	{name: "SEC-L8 mia changes or removes limits, adds or removes finalizers, by JSON patch or server-side apply as field manager " +
		"warren: refused; the status, or deletes: refused by RBAC", tries: []try{
		refused(mia, "spec.limits may be set only",
			jsonPatch("lnamespace payments", `[{op: remove, path: /spec/limits}]`),
			jsonPatch("lnamespace payments", `[{op: replace, path: /spec/limits/depth, value: 9}]`),
			tenantApplied(`metadata: {name: payments, finalizers: [$D/lnamespace]}, spec: {limits: {subNamespaces: 500, depth: 4}}`),
			tenantApplied(`metadata: {name: payments, finalizers: [$D/lnamespace]}`)),
		refused(mia, "owners and finalizers",
			jsonPatch("lnamespace payments", `[{op: add, path: /metadata/finalizers/-, value: example.com/held}]`),
			jsonPatch("lnamespace payments", `[{op: remove, path: /metadata/finalizers}]`),
			tenantApplied(`metadata: {name: payments, finalizers: [$D/lnamespace, example.com/held]},
  spec: {limits: {subNamespaces: 50, depth: 4}}`),
			tenantApplied(`metadata: {name: payments}, spec: {limits: {subNamespaces: 50, depth: 4}}`)),
		denied(mia,
			merge("lnamespace payments", `{status: {sudoGrantedAt: null}}`, "status"),
			jsonPatch("lnamespace payments", `[{op: remove, path: /status/sudoGrantedAt}]`, "status"),
			tenantApplied(`metadata: {name: payments}, status: {namespace: victim}`, "--subresource=status"),
			remove("lnamespace payments")),
		allowed(mia,
			jsonPatch("lnamespace payments", `[{op: test, path: /metadata/name, value: payments}]`),
			tenantApplied(`metadata: {name: payments, finalizers: [$D/lnamespace]}, spec: {limits: {subNamespaces: 50, depth: 4}}`)),
	}},
	{name: "SEC-O42 op adds a finalizer to its webhook configurations: refused, `may change only the caBundle`", tries: []try{
		refused(op, "may change only the caBundle",
			merge("validatingwebhookconfiguration warren", held),
			merge("mutatingwebhookconfiguration warren", held)),
	}},
	{name: "SEC-O43 op adds a second name, API group or resource to the rule of the group in warren:sudo:x, or a rule for " +
		"`userextras/*`: refused, `may let sudoers become`", tries: []try{
		refused(op, sudoersMay,
			create("clusterrole warren:sudo:x",
				rule(`apiGroups: [""], resources: [groups], resourceNames: [x-sudoers, "system:masters"], verbs: [impersonate]`)),
			create("clusterrole warren:sudo:x",
				rule(`apiGroups: ["", authentication.k8s.io], resources: [groups], resourceNames: [x-sudoers], verbs: [impersonate]`)),
			create("clusterrole warren:sudo:x",
				rule(`apiGroups: [""], resources: [groups, users], resourceNames: [x-sudoers], verbs: [impersonate]`)),
			create("clusterrole warren:sudo:x", rule(`apiGroups: [authentication.k8s.io], resources: ["userextras/*"], verbs: [impersonate]`))),
	}},
}
