package attack_test

import (
	"context"

	. "github.com/onsi/gomega"
)

// ours is a patch of one label; notes is a patch of one annotation.
func ours(key, value string) string { return `{metadata: {labels: {` + key + `: ` + value + `}}}` }

func notes(key, value string) string {
	return `{metadata: {annotations: {` + key + `: ` + value + `}}}`
}

const privileged = `{metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}}`

const labelledByHand = `{apiVersion: v1, kind: Namespace, metadata: {name: pay-web, labels: {x: "y"}}}`

// The keys that SEC-N10 and SEC-N11 try on a plain namespace.
var forged = map[string]string{
	"$D/type":              ours("$D/type", "root"),
	"$D/parent":            ours("$D/parent", "victim"),
	"$D/template":          ours("$D/template", "tmpl"),
	"victim.tree.$D/depth": ours("victim.tree.$D/depth", `"1"`),
	"$D/ancestry":          notes("$D/ancestry", "victim/plain"),
	"$D/adopt":             notes("$D/adopt", "carol"),
}

// forging tries each forged key on a namespace. Each refusal must name the key.
func forging(by actor, namespace string) []try {
	var tries []try
	for key, body := range forged {
		tries = append(tries, refused(by, key, merge("namespace "+namespace, body)))
	}
	return tries
}

var namespaceRows = []row{
	{name: "SEC-N1 bob labels pay-web by `kubectl label`, by apply, also server-side with --force-conflicts, and by replace: refused, " +
		"`belongs to a tenant`, each answer names the key; SEC-N1 his JSON " +
		"patch that removes all labels of pay-web is refused, too", tries: []try{
		refused(bob, "belongs to a tenant: only the operator and cluster administrators may change its labels and annotations; refused: x",
			kubectl("namespace pay-web", "", "label", "namespace", "pay-web", "x=y"),
			kubectl("namespace pay-web", labelledByHand, "apply", "--server-side", "--force-conflicts", "-f", "-")),
		refused(bob, "refused: x, kubectl.kubernetes.io/last-applied-configuration",
			kubectl("namespace pay-web", labelledByHand, "apply", "-f", "-")),
		refused(bob, "refused: x, ", kubectl("namespace pay-web", labelledByHand, "replace", "-f", "-")),
		refused(bob, "$D/parent", jsonPatch("namespace pay-web", `[{op: remove, path: /metadata/labels}]`)),
	}},
	{name: "SEC-N2 bob sets enforce=privileged on pay-web: refused, the answer names the key; he creates a privileged pod there: " +
		"refused, it violates PodSecurity", tries: []try{
		refused(bob, "refused: pod-security.kubernetes.io/enforce", merge("namespace pay-web", privileged)),
		{bob, []request{create("pod pay-web/breakout",
			`{spec: {containers: [{name: c, image: c, securityContext: {privileged: true}}]}}`)}, podSecurity, "baseline", 403},
	}},
	{name: "SEC-N3 bob sets parent=victim on pay-web, also by /status, removes parent or bound there, or removes type from payments: all " +
		"refused, each answer names the key; SUB-M6 a sudoer cannot change label parent of their namespace, by kubectl label, by a patch, " +
		"or through its status", tries: []try{
		refused(bob, "refused: $D/parent",
			kubectl("namespace pay-web", "", "label", "namespace", "pay-web", spelled("$D/parent=victim"), "--overwrite"),
			merge("namespace pay-web", ours("$D/parent", "victim")), merge("namespace pay-web", ours("$D/parent", "null"))),
		refused(bob, "not yours to write", merge("namespace pay-web", ours("$D/parent", "victim"), "status")),
		refused(bob, "refused: $D/type", merge("namespace payments", ours("$D/type", "null"))),
		refused(bob, "refused: $D/bound", merge("namespace pay-web", ours("$D/bound", "null"))),
	}},
	{name: "SEC-N4 bob annotates pay-web with Kubernetes' node-selector: refused, the answer names the key", tries: []try{
		refused(bob, "refused: scheduler.alpha.kubernetes.io/node-selector",
			merge("namespace pay-web", notes("scheduler.alpha.kubernetes.io/node-selector", "pool=others"))),
	}},
	{name: "SEC-N5 bob writes an annotation, a condition or a finalizer of pay-web by PATCH of namespaces/status or PUT of " +
		"namespaces/finalize: refused, `not yours to write`", tries: []try{
		refused(bob, "not yours to write",
			merge("namespace pay-web", notes("scheduler.alpha.kubernetes.io/node-selector", "pool=others"), "status"),
			put("namespace pay-web", notes("scheduler.alpha.kubernetes.io/node-selector", "pool=others"), "finalize"),
			merge("namespace pay-web", `{status: {conditions: [{type: Odd, status: "True"}]}}`, "status"),
			put("namespace pay-web", `{spec: {finalizers: [kubernetes, example.com/hold]}}`, "finalize")),
	}},
	{name: "SEC-N6 bob deletes namespace pay-web, or payments with --cascade=orphan: refused, `delete its SubNamespace or LNamespace " +
		"instead`", tries: []try{
		refused(bob, "delete its SubNamespace or LNamespace instead",
			kubectl("namespace pay-web", "", "delete", "namespace", "pay-web", "--wait=false"),
			kubectl("namespace payments", "", "delete", "namespace", "payments", "--wait=false", "--cascade=orphan")),
	}},
	{name: "SEC-N7 bob gives pay-web an owner that does not exist, or a finalizer: refused, `owners and finalizers`; 60 s later the " +
		"namespace is unchanged", tries: []try{
		refused(bob, "owners and finalizers",
			merge("namespace pay-web", `{metadata: {ownerReferences: [`+dangling+`]}}`),
			merge("namespace pay-web", `{metadata: {finalizers: [example.com/hold]}}`)),
	}, then: func(ctx context.Context, f *fixture) { f.stays(ctx, "namespace pay-web") }},
	{name: "SEC-N8 bob sets a label of pay-web to the value that it has, and sends an empty patch: both allowed", tries: []try{
		allowed(bob,
			kubectl("namespace pay-web", "", "label", "namespace", "pay-web", "--overwrite", "pod-security.kubernetes.io/enforce=baseline"),
			merge("namespace pay-web", `{}`)),
	}},
	{name: "SEC-N9 a ServiceAccount of pay-web, whose Role there allows it to patch namespaces, removes enforce from pay-web: refused " +
		"(in another project this was a CVE)", tries: []try{
		refused(deployer, "refused: pod-security.kubernetes.io/enforce",
			merge("namespace pay-web", ours("pod-security.kubernetes.io/enforce", "null"))),
	}},
	{name: "SEC-N10 carol sets label type, parent, template or a tree label, annotation ancestry or adopt on plain: all refused, each " +
		"answer names the key", tries: forging(carol, "plain")},
	{name: "SEC-N11 carol sets parent=victim on plain by /status and by /finalize: both refused, the answers name the key", tries: []try{
		refused(carol, "$D/parent",
			merge("namespace plain", forged["$D/parent"], "status"), put("namespace plain", forged["$D/parent"], "finalize")),
	}},
	{name: "SEC-N12 erin creates a Namespace with parent=victim: refused; without our keys: allowed; SUB-T13 a user who may only create " +
		"namespaces creates a plain one, but none with a parent; a sudoer cannot label payments with bound=true", tries: []try{
		refused(erin, "$D/parent", create("namespace intruder", ours("$D/parent", "victim"))),
		allowed(erin, create("namespace erins", ``)),
		refused(bob, "refused: $D/bound", merge("namespace payments", ours("$D/bound", `"true"`))),
	}},
	{name: "SEC-N13 a user who may update and patch pay-web by a ClusterRole with resourceNames labels it: refused; SEC-N13 a user with " +
		"patch on all namespaces, but not update, labels pay-web: refused; a plain namespace: allowed", tries: []try{
		refused(named, "refused: x", merge("namespace pay-web", ours("x", `"y"`)), put("namespace pay-web", ours("x", `"y"`))),
		refused(patcher, "refused: x", merge("namespace pay-web", ours("x", `"y"`))),
		allowed(patcher, merge("namespace meadow", ours("x", `"y"`))),
	}},
	{name: "SEC-N14 a user with update on all namespaces, but not delete, labels a namespace of a tenant: allowed; deletes it: refused " +
		"by RBAC", tries: []try{
		allowed(updater, merge("namespace pay-labelled", ours("x", `"y"`))),
		denied(updater, remove("namespace pay-labelled")),
	}},
	{name: "SEC-N15 a user with patch alone on all namespaces removes label protected from argocd, or sets type=root and an owner on " +
		"kube-system: both refused", tries: []try{
		refused(patcher, "$D/protected", merge("namespace argocd", ours("$D/protected", "null"))),
		refused(patcher, "", merge("namespace kube-system", `{metadata: {labels: {$D/type: root}, ownerReferences: [`+dangling+`]}}`)),
	}},
	{name: "SEC-N16 cl gives plain type=not-a-root, an empty parent, or itself as parent, or gives a root or inst a parent: 422, with " +
		"the message of namespace-shape; SEC-N16 cl sets type on kube-system, parent=kube-system on plain, or a parent on argocd: 403, `is " +
		"a protected namespace`; SUB-T1 a Namespace with type not-a-root (must be root or template) or an empty parent (can't be empty) is " +
		"refused; SUB-T2 a Namespace whose parent or template is itself is refused: would make a cycle; SUB-T3 by create and by update, " +
		"parent is refused beside template (can't reference a template), and beside a type (can't be a root or a template); SUB-T12 type " +
		"root on kube-system, or parent kube-system on another Namespace, is refused: kube-system is a protected namespace", tries: []try{
		invalid(clara, "label $D/type must be root or template",
			merge("namespace plain", ours("$D/type", "not-a-root")), create("namespace misshapen", ours("$D/type", "not-a-root"))),
		invalid(clara, "labels $D/parent and template can't be empty",
			merge("namespace plain", ours("$D/parent", `""`)), create("namespace misshapen", ours("$D/parent", `""`))),
		invalid(clara, "its own parent or template would make a cycle",
			merge("namespace plain", ours("$D/parent", "plain")), merge("namespace plain", ours("$D/template", "plain")),
			create("namespace misshapen", ours("$D/parent", "misshapen")), create("namespace misshapen", ours("$D/template", "misshapen"))),
		invalid(clara, "a sub-namespace can't be a root or a template",
			merge("namespace payments", ours("$D/parent", "victim")), merge("namespace tmpl", ours("$D/parent", "victim")),
			create("namespace misshapen", ours("$D/parent", "victim, $D/type: root")),
			create("namespace misshapen", ours("$D/parent", "victim, $D/type: template"))),
		invalid(clara, "a sub-namespace can't reference a template",
			merge("namespace inst", ours("$D/parent", "victim")), create("namespace misshapen", ours("$D/parent", "victim, $D/template: tmpl"))),
		refused(clara, "kube-system is a protected namespace",
			merge("namespace kube-system", ours("$D/type", "root")), merge("namespace plain", ours("$D/parent", "kube-system"))),
		refused(clara, "argocd is a protected namespace", merge("namespace argocd", ours("$D/parent", "victim"))),
	}},
	{name: "SEC-N17 cl sets a tree label on pay-web: refused, `nobody sets them`; removes one from a sub-namespace, or creates a " +
		"Namespace with parent and tree labels: allowed", tries: []try{
		refused(clara, "nobody sets them", merge("namespace pay-web", ours("victim.tree.$D/depth", `"2"`))),
		allowed(clara,
			merge("namespace pay-treeless", ours("payments.tree.$D/depth", "null")),
			create("namespace restored", `{metadata: {labels: {$D/parent: payments, payments.tree.$D/depth: "1", restored.tree.$D/depth: "0"}}}`)),
	}},
	{name: "SEC-N18 the namespace controller's token finalizes a sub-namespace with a changed label: refused; a terminating one with " +
		"empty spec.finalizers: allowed", tries: []try{
		refused(namespaceController, "refused: x", put("namespace pay-web", ours("x", `"y"`), "finalize")),
	}, then: func(ctx context.Context, f *fixture) {
		f.given(ctx, admin, create("configmap pay-held/held", `{metadata: {finalizers: [example.com/hold]}}`), remove("namespace pay-held"))
		Eventually(ctx, func(ctx context.Context) any { return f.look(ctx, "namespace pay-held") }).
			Should(HaveKeyWithValue("status", HaveKeyWithValue("phase", "Terminating")))
		// The real namespace controller writes the status at the same time: given repeats the request.
		f.given(ctx, namespaceController, put("namespace pay-held", `{spec: {finalizers: []}}`, "finalize"))
		f.gone(ctx, "namespace pay-held")
	}},
	{name: "SEC-N30 ivan, cluster-admin in levelled, sets enforce=privileged, also by /status, removes enforce, or sets an older " +
		"enforce-version: refused, `references a template`; SEC-N30 ivan may change any other label, an annotation and a finalizer of " +
		"levelled; SEC-N30 op removes template from levelled without setting released: refused, `stays guarded`", tries: []try{
		refused(ivan, "references a template",
			merge("namespace levelled", privileged),
			merge("namespace levelled", ours(enforces, "null")),
			merge("namespace levelled", ours(version, "v1.20")),
			merge("namespace levelled", ours(enforces, "privileged"), "status")),
		allowed(ivan, merge("namespace levelled", ours("x", `"y"`)), merge("namespace levelled", notes("x", `"y"`)),
			merge("namespace levelled", `{metadata: {finalizers: [example.com/hold]}}`),
			merge("namespace levelled", `{metadata: {finalizers: null}}`)),
		refused(op, "stays guarded", merge("namespace levelled", ours("$D/template", "null"))),
		refused(carol, "$D/template", merge("namespace levelled", ours("$D/template", "null"))),
	}},
	{name: "SEC-N31 bob creates an EndpointSlice with 127.0.0.1 or 169.254.169.254: 422 by the API server; SEC-N31 alice creates any " +
		"EndpointSlice, or alice or bob uses the proxy of a Service of victim: refused by RBAC", tries: []try{
		{bob, []request{create("endpointslice pay-web/probe", endpointAt("127.0.0.1"))}, "loopback", "", 422},
		{bob, []request{create("endpointslice pay-web/probe", endpointAt("169.254.169.254"))}, "link-local", "", 422},
		denied(alice, create("endpointslice pay-web/probe", endpointAt("192.0.2.1"))),
		denied(alice, kubectl("service victim/web", "", "get", "--raw", "/api/v1/namespaces/victim/services/web:80/proxy/")),
		denied(bob, kubectl("service victim/web", "", "get", "--raw", "/api/v1/namespaces/victim/services/web:80/proxy/")),
	}},
}

// endpointAt is the content of an EndpointSlice with one address.
func endpointAt(address string) string {
	return `{addressType: IPv4, ports: [{port: 443}], endpoints: [{addresses: ["` + address + `"]}]}`
}
