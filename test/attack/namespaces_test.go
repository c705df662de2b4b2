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
	{name: "SEC-N1 a sudoer labels their namespace", tries: []try{
		refused(bob, "belongs to a tenant: only the operator and cluster administrators may change its labels and annotations; refused: x",
			kubectl("namespace pay-web", "", "label", "namespace", "pay-web", "x=y"),
			kubectl("namespace pay-web", labelledByHand, "apply", "--server-side", "--force-conflicts", "-f", "-")),
		refused(bob, "refused: x, kubectl.kubernetes.io/last-applied-configuration",
			kubectl("namespace pay-web", labelledByHand, "apply", "-f", "-")),
		refused(bob, "refused: x, ", kubectl("namespace pay-web", labelledByHand, "replace", "-f", "-")),
		refused(bob, "$D/parent", jsonPatch("namespace pay-web", `[{op: remove, path: /metadata/labels}]`)),
	}},
	{name: "SEC-N2 a sudoer makes their namespace privileged", tries: []try{
		refused(bob, "refused: pod-security.kubernetes.io/enforce", merge("namespace pay-web", privileged)),
		{bob, []request{create("pod pay-web/breakout",
			`{spec: {containers: [{name: c, image: c, securityContext: {privileged: true}}]}}`)}, podSecurity, "baseline", 403},
	}},
	{name: "SEC-N3 a sudoer moves their namespace, and takes it out of the forest; SUB-M6 a sudoer cannot change label parent of their " +
		"namespace, by kubectl label, by a patch, or through its status", tries: []try{
		refused(bob, "refused: $D/parent",
			kubectl("namespace pay-web", "", "label", "namespace", "pay-web", spelled("$D/parent=victim"), "--overwrite"),
			merge("namespace pay-web", ours("$D/parent", "victim")), merge("namespace pay-web", ours("$D/parent", "null"))),
		refused(bob, "not yours to write", merge("namespace pay-web", ours("$D/parent", "victim"), "status")),
		refused(bob, "refused: $D/type", merge("namespace payments", ours("$D/type", "null"))),
		refused(bob, "refused: $D/bound", merge("namespace pay-web", ours("$D/bound", "null"))),
	}},
	{name: "SEC-N4 a sudoer annotates their namespace", tries: []try{
		refused(bob, "refused: scheduler.alpha.kubernetes.io/node-selector",
			merge("namespace pay-web", notes("scheduler.alpha.kubernetes.io/node-selector", "pool=others"))),
	}},
	{name: "SEC-N5 a sudoer goes by status and finalize", tries: []try{
		refused(bob, "not yours to write",
			merge("namespace pay-web", notes("scheduler.alpha.kubernetes.io/node-selector", "pool=others"), "status"),
			put("namespace pay-web", notes("scheduler.alpha.kubernetes.io/node-selector", "pool=others"), "finalize"),
			merge("namespace pay-web", `{status: {conditions: [{type: Odd, status: "True"}]}}`, "status"),
			put("namespace pay-web", `{spec: {finalizers: [kubernetes, example.com/hold]}}`, "finalize")),
	}},
	{name: "SEC-N6 a sudoer deletes their namespaces", tries: []try{
		refused(bob, "delete its SubNamespace or LNamespace instead",
			kubectl("namespace pay-web", "", "delete", "namespace", "pay-web", "--wait=false"),
			kubectl("namespace payments", "", "delete", "namespace", "payments", "--wait=false", "--cascade=orphan")),
	}},
	{name: "SEC-N7 a sudoer gives their namespace an owner or a finalizer", tries: []try{
		refused(bob, "owners and finalizers",
			merge("namespace pay-web", `{metadata: {ownerReferences: [`+dangling+`]}}`),
			merge("namespace pay-web", `{metadata: {finalizers: [example.com/hold]}}`)),
	}, then: func(ctx context.Context, f *fixture) { f.stays(ctx, "namespace pay-web") }},
	{name: "SEC-N8 a sudoer changes nothing", tries: []try{
		allowed(bob,
			kubectl("namespace pay-web", "", "label", "namespace", "pay-web", "--overwrite", "pod-security.kubernetes.io/enforce=baseline"),
			merge("namespace pay-web", `{}`)),
	}},
	{name: "SEC-N9 a ServiceAccount takes off the level of pod security", tries: []try{
		refused(deployer, "refused: pod-security.kubernetes.io/enforce",
			merge("namespace pay-web", ours("pod-security.kubernetes.io/enforce", "null"))),
	}},
	{name: "SEC-N10 the owner of a plain namespace forges keys", tries: forging(carol, "plain")},
	{name: "SEC-N11 the owner of a plain namespace joins a tree by status and finalize", tries: []try{
		refused(carol, "$D/parent",
			merge("namespace plain", forged["$D/parent"], "status"), put("namespace plain", forged["$D/parent"], "finalize")),
	}},
	{name: "SEC-N12 who may create namespaces makes one in a tree; SUB-T13 a user who may only create namespaces creates a plain one, but " +
		"none with a parent; a sudoer cannot label payments with bound=true", tries: []try{
		refused(erin, "$D/parent", create("namespace intruder", ours("$D/parent", "victim"))),
		allowed(erin, create("namespace erins", ``)),
		refused(bob, "refused: $D/bound", merge("namespace payments", ours("$D/bound", `"true"`))),
	}},
	{name: "SEC-N13 rights to one namespace, or to patch alone, are no cluster admin's", tries: []try{
		refused(named, "refused: x", merge("namespace pay-web", ours("x", `"y"`)), put("namespace pay-web", ours("x", `"y"`))),
		refused(patcher, "refused: x", merge("namespace pay-web", ours("x", `"y"`))),
		allowed(patcher, merge("namespace meadow", ours("x", `"y"`))),
	}},
	{name: "SEC-N14 who may update namespaces cluster-wide labels them, and doesn't delete them", tries: []try{
		allowed(updater, merge("namespace pay-labelled", ours("x", `"y"`))),
		denied(updater, remove("namespace pay-labelled")),
	}},
	{name: "SEC-N15 who may patch namespaces reaches for protected ones", tries: []try{
		refused(patcher, "$D/protected", merge("namespace argocd", ours("$D/protected", "null"))),
		refused(patcher, "", merge("namespace kube-system", `{metadata: {labels: {$D/type: root}, ownerReferences: [`+dangling+`]}}`)),
	}},
	{name: "SEC-N16 even a cluster admin can't give a namespace a wrong shape; SUB-T1 a Namespace with type not-a-root (must be root or " +
		"template) or an empty parent (can't be empty) is refused; SUB-T2 a Namespace whose parent or template is itself is refused: would " +
		"make a cycle; SUB-T3 by create and by update, parent is refused beside template (can't reference a template), and beside a type " +
		"(can't be a root or a template); SUB-T12 type root on kube-system, or parent kube-system on another Namespace, is refused: " +
		"kube-system is a protected namespace", tries: []try{
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
	{name: "SEC-N17 nobody sets derived keys, but a cluster admin takes them off and restores a backup", tries: []try{
		refused(clara, "nobody sets them", merge("namespace pay-web", ours("victim.tree.$D/depth", `"2"`))),
		allowed(clara,
			merge("namespace pay-treeless", ours("payments.tree.$D/depth", "null")),
			create("namespace restored", `{metadata: {labels: {$D/parent: payments, payments.tree.$D/depth: "1", restored.tree.$D/depth: "0"}}}`)),
	}},
	{name: "SEC-N18 the namespace controller finalizes, and nothing else", tries: []try{
		refused(namespaceController, "refused: x", put("namespace pay-web", ours("x", `"y"`), "finalize")),
	}, then: func(ctx context.Context, f *fixture) {
		f.given(ctx, admin, create("configmap pay-held/held", `{metadata: {finalizers: [example.com/hold]}}`), remove("namespace pay-held"))
		Eventually(ctx, func(ctx context.Context) any { return f.look(ctx, "namespace pay-held") }).
			Should(HaveKeyWithValue("status", HaveKeyWithValue("phase", "Terminating")))
		// The real namespace controller writes the status at the same time: given repeats the request.
		f.given(ctx, namespaceController, put("namespace pay-held", `{spec: {finalizers: []}}`, "finalize"))
		f.gone(ctx, "namespace pay-held")
	}},
	{name: "SEC-N30 whom a binding in an instance of a template helps can't lower its level of pod security", tries: []try{
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
	{name: "SEC-N31 who may proxy to Services of a tree reaches neither the API server's own host nor other tenants", tries: []try{
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
