package attack_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// What somebody with a stolen token of the operator tries. The requests would help user mallory.

var mallory = actor{user: "mallory"}

// impersonating is the content of a ClusterRole with one rule of Legacy sudo.
func impersonating(resource, name string) string {
	return fmt.Sprintf(`{rules: [{apiGroups: [""], resources: [%s], resourceNames: [%q], verbs: [impersonate]}]}`, resource, name)
}

// rule is the content of a ClusterRole with one rule.
func rule(fields string) string { return `{rules: [{` + fields + `}]}` }

// binding is the content of a binding of one ClusterRole to subjects.
func binding(clusterRole string, subjects ...string) string {
	return fmt.Sprintf(`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %q}, subjects: [%s]}`,
		clusterRole, strings.Join(subjects, ", "))
}

func user(name string) string {
	return fmt.Sprintf(`{apiGroup: rbac.authorization.k8s.io, kind: User, name: %q}`, name)
}

func group(name string) string {
	return fmt.Sprintf(`{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %q}`, name)
}

const (
	itself     = "may let USER impersonate itself"
	sudoersMay = "may let sudoers become the group"
	editMay    = "may allow get, update and patch of that LNamespace"
	noSubject  = "may not bind system users, system groups or another tenant's sudoers"
	clusterAll = `{rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`
)

var cageRows = []row{
	{name: "SEC-O1 op binds cluster-admin, creates ClusterRole evil or warren:other:x, replaces view or warren-manager or its binding, " +
		"or deletes cluster-admin: refused, `may not write`; patches: refused by RBAC", tries: []try{
		refused(op, "may not write",
			create("clusterrolebinding evil", binding("cluster-admin", user("mallory"))),
			create("clusterrole evil", clusterAll),
			create("clusterrole warren:other:x", clusterAll),
			put("clusterrole view", clusterAll),
			put("clusterrole warren-manager", clusterAll),
			put("clusterrolebinding warren-manager", binding("warren-manager", user("mallory"))),
			remove("clusterrole cluster-admin")),
		denied(op, merge("clusterrole view", clusterAll), merge("clusterrole warren-manager", clusterAll)),
	}},
	{name: "SEC-O2 warren:self:zoe that allows to impersonate admin, two users, users without name or `*`, every resource named zoe, a " +
		"group or a ServiceAccount: refused, `may let USER impersonate itself`; SEC-O2 so is one with every verb or a further verb on user " +
		"zoe, or with nonResourceURLs, and warren:self:system:admin", tries: []try{
		refused(op, itself,
			create("clusterrole warren:self:zoe", impersonating("users", "admin")),
			create("clusterrole warren:self:zoe", rule(`apiGroups: [""], resources: [users], resourceNames: [zoe, admin], verbs: [impersonate]`)),
			create("clusterrole warren:self:zoe", rule(`apiGroups: [""], resources: [users], verbs: [impersonate]`)),
			create("clusterrole warren:self:zoe", impersonating("users", "*")),
			create("clusterrole warren:self:zoe", rule(`apiGroups: [""], resources: ["*"], resourceNames: [zoe], verbs: [impersonate]`)),
			create("clusterrole warren:self:zoe", rule(`apiGroups: [""], resources: [users], resourceNames: [zoe], verbs: ["*"]`)),
			create("clusterrole warren:self:zoe", rule(`apiGroups: [""], resources: [users], resourceNames: [zoe], verbs: [impersonate, get]`)),
			create("clusterrole warren:self:zoe", impersonating("groups", "zoe")),
			create("clusterrole warren:self:zoe", impersonating("serviceaccounts", "zoe")),
			create("clusterrole warren:self:zoe", rule(`nonResourceURLs: ["*"], verbs: [get]`)),
			create("clusterrole warren:self:system:admin", impersonating("users", "system:admin"))),
	}},
	{name: "SEC-O3 op binds warren:self:zoe to bob, to zoe and bob, or has the binding of that name refer to " +
		"cluster-admin: all refused", tries: []try{
		refused(op, "has USER as its one subject",
			create("clusterrolebinding warren:self:zoe", binding("warren:self:zoe", user("bob"))),
			create("clusterrolebinding warren:self:zoe", binding("warren:self:zoe", user("zoe"), user("bob")))),
		refused(op, "binds the ClusterRole of its own name",
			create("clusterrolebinding warren:self:zoe", binding("cluster-admin", user("zoe")))),
	}},
	{name: "SEC-O4 warren:sudo:shop that allows to impersonate system:masters, payments-sudoers, user admin or userextras/scopes, or " +
		"impersonate-on for `*` or nonResourceURLs: refused, `may let sudoers become`", tries: []try{
		refused(op, sudoersMay,
			create("clusterrole warren:sudo:shop", impersonating("groups", "system:masters")),
			create("clusterrole warren:sudo:shop", impersonating("groups", "payments-sudoers")),
			create("clusterrole warren:sudo:shop", impersonating("users", "admin")),
			create("clusterrole warren:sudo:shop", rule(`apiGroups: [authentication.k8s.io], resources: [userextras/scopes], verbs: [impersonate]`)),
			create("clusterrole warren:sudo:shop", rule(`apiGroups: ["*"], resources: ["*"], verbs: ["impersonate-on:user-info:get"]`)),
			create("clusterrole warren:sudo:shop", rule(`nonResourceURLs: ["*"], verbs: ["impersonate-on:user-info:get"]`))),
	}},
	{name: "SEC-O5 warren:edit:shop with a rule for LNamespace payments, verb delete, label aggregate-to-edit or an aggregationRule: all " +
		"refused", tries: []try{
		refused(op, editMay,
			create("clusterrole warren:edit:shop", rule(`apiGroups: [$D], resources: [lnamespaces], resourceNames: [payments], verbs: [get]`)),
			create("clusterrole warren:edit:shop", rule(`apiGroups: [$D], resources: [lnamespaces], resourceNames: [shop], verbs: [get, delete]`))),
		refused(op, "may not set aggregation labels", create("clusterrole warren:edit:shop",
			`{metadata: {labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}, rules: [{apiGroups: [$D], resources: [lnamespaces], `+
				`resourceNames: [shop], verbs: [get]}]}`)),
		refused(op, "may not write an aggregated ClusterRole", create("clusterrole warren:edit:shop",
			`{aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: "y"}}]}, rules: [{apiGroups: [$D], resources: [lnamespaces], `+
				`resourceNames: [shop], verbs: [get]}]}`)),
	}},
	{name: "SEC-O6 op binds in warren:edit:shop Group system:authenticated, Group payments-sudoers or a ServiceAccount of kube-system: " +
		"all refused", tries: []try{
		refused(op, noSubject,
			create("clusterrolebinding warren:edit:shop", binding("warren:edit:shop", group("system:authenticated"))),
			create("clusterrolebinding warren:edit:shop", binding("warren:edit:shop", group("payments-sudoers"))),
			create("clusterrolebinding warren:sudo:shop", binding("warren:sudo:shop", group("payments-sudoers"))),
			create("clusterrolebinding warren:edit:shop",
				binding("warren:edit:shop", `{kind: ServiceAccount, namespace: kube-system, name: default}`))),
	}},
	soleRow,
	{name: "SEC-O7 op writes access objects and sole pairs, for each mode of sudo and for both together; for users such as `..` or of " +
		"256 characters: all allowed", tries: slices.Concat(
		accessObjects("legacy", `[`+legacySelf+`]`, legacySudo),
		accessObjects("constrained", `[`+constrainedSelf+`]`, constrainedSudo),
		accessObjects("both", `[`+legacySelf+`, `+constrainedSelf+`]`, legacySudo+`, `+constrainedSudo))},
	{name: "SEC-O49 op writes a pair without the labels of its name, with those of another tenant, or changes them later: all refused, " +
		"`needs the labels of its name`", tries: []try{
		refused(op, "needs the labels of its name", unlabelledPairs()...)}},
	{name: "SEC-O8 op creates a marked Role or RoleBinding in kube-system, argocd, plain or warren-system, or an unmarked one in " +
		"payments: refused; marked ones in payments: allowed; SEC-O8 in left, which has left its tree, op deletes a marked RoleBinding: " +
		"allowed; deletes an unmarked one, edits or creates a marked one: all refused", tries: []try{
		refused(op, "", concat(
			rolesIn("kube-system", "mine"), rolesIn("argocd", "mine"), rolesIn("plain", "mine"), rolesIn("warren-system", "mine"))...),
		refused(op, "whatever the operator writes carries its mark",
			create("rolebinding payments/mine", bindingTo("view", "mallory")),
			create("role payments/mine", `{rules: []}`)),
		allowed(op,
			create("rolebinding payments/marked", marked("access: users", bindingTo("view", "dave"))),
			create("role payments/marked", marked("inherited-from: payments", `{rules: []}`))),
		refused(op, "only in managed namespaces",
			put("rolebinding left/marked", `{metadata: {labels: {x: "y"}}}`),
			create("rolebinding left/more", marked("access: users", bindingTo("view", "mallory")))),
		refused(op, "only what it wrote", remove("rolebinding left/unmarked")),
		allowed(op, remove("rolebinding left/marked")),
	}},
	{name: "SEC-O9 op creates a Secret in kube-system, or one of type service-account-token in payments: both refused", tries: []try{
		refused(op, "the operator may not write in namespace kube-system",
			create("secret kube-system/mine", marked("inherited-from: payments", `{}`))),
		refused(op, "may not write service account or bootstrap tokens", create("secret payments/token",
			`{metadata: {labels: {$D/inherited-from: payments}, annotations: {kubernetes.io/service-account.name: default}}, type: `+
				`kubernetes.io/service-account-token}`)),
	}},
	{name: "SEC-O10 op edits alice's ConfigMap, labels it inherited-from, or deletes it: refused, `only what it wrote`; removes the mark " +
		"from a copy: refused, `carries its mark`", tries: []try{
		refused(op, "only what it wrote",
			put("configmap pay-web/own", `{data: {key: two}}`),
			put("configmap pay-web/own", ours("$D/inherited-from", "payments")),
			remove("configmap pay-web/own")),
		refused(op, "carries its mark", put("secret pay-web/s", ours("$D/inherited-from", "null"))),
	}},
	{name: "SEC-O11 without component distribution, op adds distributed-by to alice's ConfigMap, with its data or others, or hands an " +
		"adopted object back: all refused", tries: []try{
		refused(op, noComponent,
			put("configmap pay-web/adoptable", `{metadata: {labels: {$D/distributed-by: news}}, data: {key: two}}`),
			put("configmap pay-web/adoptable", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}}`),
			put("configmap plain/adopted", `{metadata: {labels: {$D/distributed-by: null}, annotations: {$D/adopted: null}}}`)),
	}},
	{name: "SEC-O12 op labels kube-system, warren-system, argocd or plain, removes protected from argocd, sets adopt on pay-web, or " +
		"`inherited` on plain: all refused; SEC-O12 on a namespace that has left its tree, op removes tree labels, `inherited` and the keys " +
		"that it lists: allowed; removes, changes or lists any other: refused", tries: []try{
		refused(op, "is a protected namespace",
			merge("namespace kube-system", ours("x", `"y"`)), merge("namespace warren-system", ours("x", `"y"`)),
			merge("namespace argocd", ours("x", `"y"`)), merge("namespace argocd", ours("$D/protected", "null"))),
		refused(op, "the keys protected and adopt are a cluster administrator's", merge("namespace pay-web", notes("$D/adopt", `"true"`))),
		refused(op, "the operator may write only managed namespaces",
			merge("namespace plain", ours("x", `"y"`)), merge("namespace plain", notes("$D/inherited", "team")),
			merge("namespace cleaned", ours("tier", "null")), merge("namespace cleaned", ours("tier", "db")),
			merge("namespace cleaned", notes("other", "null")), merge("namespace cleaned", notes("other", "d")),
			merge("namespace cleaned", notes("$D/inherited", `"team,@memo,tier"`))),
		allowed(op, merge("namespace cleaned", `{metadata: {labels: {payments.tree.$D/depth: null, cleaned.tree.$D/depth: null, team: null},
			annotations: {$D/inherited: null, memo: null}}}`)),
	}},
	{name: "SEC-O13 op sets enforce=privileged on pay-web or a new child: refused; enforce=restricted: allowed; then removes enforce: " +
		"refused", tries: []try{
		refused(op, "may not make a namespace privileged",
			merge("namespace pay-web", privileged),
			create("namespace pay-privileged", `{metadata: {labels: {$D/parent: payments, pod-security.kubernetes.io/enforce: privileged}}}`)),
		allowed(op, merge("namespace pay-hardened", ours("pod-security.kubernetes.io/enforce", "restricted"))),
		refused(op, neverLower, merge("namespace pay-hardened", ours("pod-security.kubernetes.io/enforce", "null"))),
	}},
	{name: "SEC-O14 op creates a Namespace with an owner, a template, evil without our keys, or root kube-evil: refused; root shop and " +
		"its child: allowed; SEC-O14 op gives a root an owner or a finalizer, or sets a parent on a marked namespace that has an owner: all " +
		"refused", tries: []try{
		refused(op, "may not give a Namespace an owner or a finalizer",
			create("namespace begotten", `{metadata: {labels: {$D/type: root}, ownerReferences: [`+unheardOf+`]}}`)),
		// With component strict-placement, its policy may refuse first, because the namespace has no mark. Only the common part is expected.
		refused(op, " denied request: ", merge("namespace owned", ours("$D/parent", "payments"))),
		refused(op, "only a cluster administrator may make a namespace a template", create("namespace templates", ours("$D/type", "template"))),
		refused(op, "the operator may write only managed namespaces", create("namespace evil", ``)),
		refused(op, "kube-evil is a protected namespace", create("namespace kube-evil", ours("$D/type", "root"))),
		allowed(op, create("namespace shop", ours("$D/type", "root")), create("namespace shop-web", ours("$D/parent", "shop"))),
		refused(op, "may not give a Namespace an owner or a finalizer", merge("namespace free", `{metadata: {ownerReferences: [`+unheardOf+`]}}`),
			merge("namespace free", foreignFinalizer)),
	}},
	{name: "SEC-O15 op deletes plain, or a root that cl labelled by hand: refused; a bound sub-namespace, or the root of an LNamespace: " +
		"allowed", tries: []try{
		refused(op, "the operator may write only managed namespaces", remove("namespace plain")),
		refused(op, "may delete bound sub-namespaces and the roots of LNamespaces only", remove("namespace handmade")),
		allowed(op, remove("namespace pay-deleted"), remove("namespace doomed")),
	}},
	{name: "SEC-O16 op impersonates admin, requests a ServiceAccount's token, creates a pod, finalizes pay-web, or deletes a policy " +
		"binding or a CRD: all refused by RBAC; SEC-O16 where RBAC allows op to finalize a namespace, the cage refuses it", tries: []try{
		denied(actor{op.user, rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}}, list("secret kube-system/*")),
		denied(op,
			kubectl("serviceaccount kube-system/namespace-controller", "", "create", "token", "-n", "kube-system", "namespace-controller"),
			create("pod payments/mine", `{spec: {containers: [{name: c, image: c}]}}`),
			put("namespace pay-web", `{spec: {finalizers: []}}`, "finalize"),
			remove("policybinding warren-operator-cage-rbac"),
			remove("customresourcedefinition lnamespaces.$D")),
		refused(op, "may not write the status or the finalizers of a Namespace", put("namespace inst", `{spec: {finalizers: []}}`, "finalize")),
	}},
	{name: "SEC-O17 op changes the spec of an LNamespace, creates one, or creates an HC with a parent: refused; SEC-O17 op creates an HC " +
		"without spec in a managed namespace, and adds a finalizer of our domain to an LNamespace: allowed", tries: []try{
		refused(op, "may not change a user's spec", merge("lnamespace payments", `{spec: {sudoers: [{kind: User, name: mallory}]}}`)),
		denied(op, create("lnamespace mine", `{spec: {sudoers: [{kind: User, name: mallory}]}}`)),
		refused(op, "may create only HierarchyConfigurations and SubNamespaces with an empty spec",
			create("hierarchyconfiguration plain/hierarchy", `{spec: {parent: victim}}`)),
		allowed(op,
			create("hierarchyconfiguration free/hierarchy", ``),
			jsonPatch("lnamespace doomed", `[{op: add, path: /metadata/finalizers/-, value: $D/test}]`)),
	}},
	{name: "SEC-O44 op creates a SubNamespace in default or plain, an HC in plain, or a SubNamespace in pay-web with a foreign finalizer " +
		"or an owner: refused, `only in managed namespaces`; SEC-O44 op gives an LNamespace an owner, another creator or a foreign " +
		"finalizer, or a SubNamespace an owner: refused, `neither the owners`; SEC-O44 op creates an HC and a SubNamespace in managed " +
		"namespaces: allowed", tries: []try{
		refused(op, "only in managed namespaces, without owners and without finalizers of others",
			create("subnamespace default/planted", ``),
			create("subnamespace plain/planted", ``),
			create("hierarchyconfiguration plain/hierarchy", ``),
			create("hierarchyconfiguration plain/hierarchy", foreignFinalizer),
			create("subnamespace pay-web/planted", foreignFinalizer),
			create("subnamespace pay-web/planted", disowned)),
		refused(op, "neither the owners, nor the creator, nor the finalizers of others",
			merge("lnamespace owned", disowned),
			merge("lnamespace owned", notes("$D/creator", "mallory")),
			merge("lnamespace owned", `{metadata: {finalizers: [$D/cleanup, example.com/hold]}}`),
			merge("subnamespace payments/pay-web", disowned)),
		allowed(op, create("hierarchyconfiguration handmade/hierarchy", ``), create("subnamespace pay-web/required", ``)),
	}},
	{name: "SEC-O45 op creates an Event as source kubelet, or changes Events of others: refused, `only its own Events`; SEC-O45 op " +
		"creates an Event about a Pod in kube-system or argocd, a RoleBinding in argocd, or a Node: refused, `only about its own kinds`; " +
		"SEC-O45 op creates Events about an LNamespace, an object in pay-web, a Secret in plain or default, and itself: allowed", tries: []try{
		refused(op, "only its own Events",
			create("event pay-web/forged", eventOf("kubelet", `{apiVersion: v1, kind: Pod, namespace: pay-web, name: web}`)),
			merge("event pay-web/theirs", `{message: nothing happened}`),
			merge("event pay-web/theirs", `{source: {component: warren}}`),
			merge("event default/theirs", `{message: nothing happened}`)),
		refused(op, "only about its own kinds",
			create("event kube-system/forged", eventOf("warren", `{apiVersion: v1, kind: Pod, namespace: kube-system, name: dns}`)),
			create("event argocd/forged",
				eventOf("warren", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, namespace: argocd, name: b}`)),
			create("event argocd/forged", eventOf("warren", `{apiVersion: v1, kind: Pod, namespace: argocd, name: web}`)),
			create("event default/forged", eventOf("warren", `{apiVersion: v1, kind: Node, name: one}`))),
		allowed(op,
			create("event default/about-a-tenant", eventOf("warren", `{apiVersion: $D/v1alpha1, kind: LNamespace, name: payments}`)),
			create("event pay-web/about-a-source", eventOf("warren", `{apiVersion: v1, kind: Secret, namespace: pay-web, name: s}`)),
			create("event plain/about-an-obstacle", eventOf("warren", `{apiVersion: v1, kind: Secret, namespace: plain, name: theirs}`)),
			create("event warren-system/elected",
				eventOf("host_0d21", `{apiVersion: coordination.k8s.io/v1, kind: Lease, namespace: warren-system, name: warren}`)),
			create("event default/about-an-obstacle", eventOf("warren", `{apiVersion: v1, kind: Secret, namespace: default, name: theirs}`)),
			create("event warren-system/about-itself",
				eventOf("warren", `{apiVersion: apps/v1, kind: Deployment, namespace: warren-system, name: warren-controller-manager}`))),
	}},
	{name: "SEC-O46 the billing exporter's token writes metadata of an LNamespace: refused, `the status of LNamespaces alone`; any field " +
		"of its status, or another condition: refused, `condition BillingExported alone`; SEC-O46 it creates Events as another source or in " +
		"kube-system, or changes Events of others: refused, `only its own Events`; SEC-O46 it writes condition BillingExported, and Events " +
		"about an LNamespace and itself: allowed", tries: []try{
		refused(exporter, "may write condition BillingExported alone", statusWrites()...),
		refused(exporter, "may write the status of LNamespaces alone", merge("lnamespace owned", notes("example.com/x", "one"))),
		refused(exporter, "only its own Events",
			create("event kube-system/forged-bill",
				eventOf("warren-billing-exporter", `{apiVersion: v1, kind: Pod, namespace: kube-system, name: dns}`)),
			create("event default/forged-bill", eventOf("warren", `{apiVersion: $D/v1alpha1, kind: LNamespace, name: payments}`)),
			merge("event pay-web/theirs", `{message: nothing happened}`)),
		allowed(exporter,
			merge("lnamespace owned", billed, "status"),
			create("event default/billed", eventOf("warren-billing-exporter", `{apiVersion: $D/v1alpha1, kind: LNamespace, name: payments}`)),
			create("event warren-system/billing", eventOf("warren-billing-exporter",
				`{apiVersion: apps/v1, kind: Deployment, namespace: warren-system, name: warren-billing-exporter}`))),
	}},
	{name: "SEC-O19 with component strict-placement, op sets parent, type or template on plain, which has no mark: all refused", tries: []try{
		refused(op, "may join a tree only after a cluster administrator has ",
			merge("namespace plain", ours("$D/parent", "victim")), merge("namespace plain", ours("$D/type", "root"))),
		refused(op, "", merge("namespace plain", ours("$D/template", "tmpl"))), // by two policies, of which either may answer
	}},
	{name: "SEC-O18 op changes rules, url, failurePolicy or reinvocationPolicy of its webhooks, adds one, or removes all: refused; " +
		"changes caBundle: allowed", tries: []try{
		turning("validatingwebhookconfiguration warren"), turning("mutatingwebhookconfiguration warren"),
		refused(op, "may change only the caBundle", jsonPatch("mutatingwebhookconfiguration warren",
			`[{op: replace, path: /webhooks/0/reinvocationPolicy, value: IfNeeded}]`)),
		allowed(op,
			jsonPatch("validatingwebhookconfiguration warren", trusting),
			jsonPatch("mutatingwebhookconfiguration warren", trusting)),
	}},
}

const (
	foreignFinalizer = `{metadata: {finalizers: [example.com/hold]}}`
	disowned         = `{metadata: {ownerReferences: [` + dangling + `]}}`
	billed           = `{status: {conditions: [{type: BillingExported, status: "True", reason: Exported, message: m, lastTransitionTime: ` +
		`"2026-01-01T00:00:00Z"}]}}`
)

// statusWrites returns a write to each field of an LNamespace's status. It reads the fields from the type, so it covers new fields too.
func statusWrites() []request {
	values := map[string]string{
		"billing":    `{costCenter: "1", since: "2026-01-01T00:00:00Z"}`,
		"budget":     `{hard: {pods: "1"}}`,
		"conditions": `[{type: Ready, status: "True", reason: Made, message: up, lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
		"namespace":  `kube-system`, "observedGeneration": `7`, "subNamespaces": `7`,
		"serviceAccounts": `[{namespace: ci, name: deployer, namespaceUID: "sha256:00"}]`,
		"sudo":            `{command: c, group: system:masters, mode: Legacy}`, "sudoGrantedAt": `"2026-01-01T00:00:00Z"`,
	}
	var all []request
	status := reflect.TypeFor[v1alpha1.LNamespaceStatus]()
	for field := range status.Fields() {
		field, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, merge("lnamespace owned", `{status: {`+field+`: `+values[field]+`}}`, "status"))
	}
	return all
}

// trusting is a patch that sets a caBundle. The API server doesn't check this value before it calls the webhook.
const trusting = `[{op: add, path: /webhooks/0/clientConfig/caBundle, value: Y2VydGlmaWNhdGU=}]`

// turning tries changes of a webhook configuration beyond its caBundle. All are refused.
func turning(target string) try {
	return refused(op, "may change only the caBundle",
		jsonPatch(target, `[{op: replace, path: /webhooks/0/rules/0/resources/0, value: "*"}]`),
		jsonPatch(target,
			`[{op: remove, path: /webhooks/0/clientConfig/service}, {op: add, path: /webhooks/0/clientConfig/url, value: `+
				`"https://evil.example.com"}]`),
		jsonPatch(target, `[{op: replace, path: /webhooks/0/failurePolicy, value: Ignore}]`),
		jsonPatch(target, `[{op: add, path: /webhooks/-, value: `+strings.Replace(webhook, "none.", "more.", 1)+`}}]`),
		merge(target, `{webhooks: []}`))
}

// rolesIn creates a RoleBinding and a Role with the label that marks the operator's own access objects.
func rolesIn(namespace, name string) []request {
	return []request{
		create("rolebinding "+namespace+"/"+name, marked("access: users", bindingTo("view", "mallory"))),
		create("role "+namespace+"/"+name, marked("access: users", `{rules: []}`)),
	}
}

func concat(requests ...[]request) []request { return slices.Concat(requests...) }

// operatorRows are all rows of the cage, and a last one that checks which rights mallory has after them.
func operatorRows() []row {
	return append(slices.Clone(cageRows), row{
		name: "SEC-O20 after all of these requests of op, `kubectl auth can-i '*' '*' -A` answers no for mallory, whom they would help, and " +
			"for op",
		then: func(ctx context.Context, f *fixture) {
			GinkgoHelper()
			f.sendRefused(ctx)
			for _, who := range []actor{mallory, op} {
				answer, _, code := f.Kubectl(ctx, who.user, "auth", "can-i", "*", "*", "-A")
				Expect(strings.TrimSpace(answer)).To(Equal("no"), who.user)
				Expect(code).To(Equal(1))
			}
			answer, _, _ := f.Kubectl(ctx, controlplane.Admin, "auth", "can-i", "*", "*", "-A")
			Expect(strings.TrimSpace(answer)).To(Equal("yes"), "the question is one that can be answered so")
		},
	})
}

// sendRefused sends the requests again that the rows expect to be refused. It ignores the answers: other requests may have changed them.
func (f *fixture) sendRefused(ctx context.Context) {
	for _, r := range cageRows {
		for _, t := range r.tries {
			for _, request := range t.requests {
				if t.refuser != "" {
					_ = request.send(ctx, f.caller(t.by))
				}
			}
		}
	}
}
