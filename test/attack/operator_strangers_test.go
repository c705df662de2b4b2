package attack_test

// What a stolen token of the operator tries on what belongs to no tenant: objects of users in other namespaces, and the
// namespaces themselves.

const (
	noComponent = "needs component distribution"
	released    = `{metadata: {labels: {$D/parent: null, $D/bound: null, $D/released: "true"}}}`
	neverLower  = "never lowers or takes off"
)

var strangersRows = []row{
	{name: "SEC-O30 without component distribution, op adds distributed-by to a user's Secret or ConfigMap, also with adopted or " +
		"source-hash: refused, `needs component distribution`; SEC-O30 op creates such a Secret in default, plain or pay-web, or a " +
		"RoleBinding in pay-web: refused; SEC-O30 op changes an object that has distributed-by, removes that label, hands the object back, " +
		"or deletes it: refused", tries: []try{
		refused(op, noComponent,
			put("secret plain/theirs", ours("$D/distributed-by", "news")),
			put("configmap plain/theirs", ours("$D/distributed-by", "news")),
			put("configmap plain/theirs", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}}`),
			put("configmap plain/theirs", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/source-hash: "update:0:0"}}}`),
			put("secret default/theirs", ours("$D/distributed-by", "news")),
			create("secret default/planted", marked("distributed-by: news", `{}`)),
			create("secret plain/planted", marked("distributed-by: news", `{}`)),
			create("secret pay-web/planted", marked("distributed-by: news", `{}`)),
			create("rolebinding pay-web/planted", marked("distributed-by: news", bindingTo("view", "mallory"))),
			put("configmap plain/given", `{data: {key: two}}`),
			put("configmap plain/given", ours("$D/distributed-by", "null")),
			put("configmap plain/adopted", `{metadata: {labels: {$D/distributed-by: null}, annotations: {$D/adopted: null}}}`),
			remove("configmap plain/given")),
	}},
	{name: "SEC-O31 op creates an object with inherited-from or access in default, plain or left, or edits a marked ConfigMap in left: " +
		"refused; deletes that one: allowed", tries: []try{
		refused(op, "only in managed namespaces",
			create("secret default/planted", marked("inherited-from: payments", `{}`)),
			create("configmap plain/planted", marked("inherited-from: payments", `{}`)),
			create("configmap left/planted", marked("access: users", `{}`)),
			put("configmap left/copied", `{data: {key: two}}`)),
		allowed(op, remove("configmap left/copied")),
	}},
	{name: "SEC-O34 op removes parent or type without setting released, sets released on pay-web, which stays in its tree, or removes it " +
		"from a released namespace: refused, `stays guarded`; SEC-O34 op releases pay-released by one write: allowed; there, bob sets " +
		"enforce=privileged, a finalizer, or removes released: refused; so is his privileged pod in a released namespace; SEC-O34 after a " +
		"mark by cl, op returns pay-released to the tree, and releases it again; cl removes released; bob deletes a released namespace: all " +
		"allowed", tries: []try{
		refused(op, "stays guarded",
			merge("namespace pay-released", `{metadata: {labels: {$D/parent: null, $D/bound: null}}}`),
			merge("namespace payments", ours("$D/type", "null")),
			merge("namespace pay-web", ours("$D/released", `"true"`)),
			merge("namespace guarded", ours("$D/released", "null"))),
		allowed(op, merge("namespace pay-released", released)),
		refused(bob, "refused: pod-security.kubernetes.io/enforce", merge("namespace pay-released", privileged)),
		refused(bob, "$D/released", merge("namespace pay-released", ours("$D/released", "null"))),
		refused(bob, "owners and finalizers", merge("namespace pay-released", `{metadata: {finalizers: [example.com/hold]}}`)),
		{bob, []request{create("pod guarded/breakout", privilegedPod)}, podSecurity, "baseline", 403},
		refused(op, "", merge("namespace pay-released", ours("$D/released", "null")), merge("namespace pay-released", ours("x", `"y"`))),
		allowed(clara, merge("namespace pay-released", notes("$D/adopt", "u"))),
		allowed(op, merge("namespace pay-released", `{metadata: {labels: {$D/parent: payments, $D/released: null}}}`),
			merge("namespace pay-released", released)),
		allowed(clara, merge("namespace pay-released", ours("$D/released", "null"))),
		allowed(bob, remove("namespace pay-let-go")),
	}},
	{name: "SEC-O35 op removes or lowers enforce, or enforce-version, also where `inherited` of a namespace in no tree lists the key: " +
		"refused, `never lowers or takes off`; SEC-O35 op sets a later enforce-version: allowed", tries: []try{
		refused(op, neverLower,
			merge("namespace pay-web", ours("pod-security.kubernetes.io/enforce", "null")),
			merge("namespace restricted", ours("pod-security.kubernetes.io/enforce", "baseline")),
			merge("namespace restricted", ours("pod-security.kubernetes.io/enforce-version", "v1.9")),
			merge("namespace restricted", ours("pod-security.kubernetes.io/enforce-version", "null")),
			merge("namespace pay-web", ours("pod-security.kubernetes.io/enforce-version", "v1.30")),
			merge("namespace guarded", `{metadata: {labels: {pod-security.kubernetes.io/enforce: null}, annotations: {$D/inherited: null}}}`)),
		allowed(op,
			merge("namespace restricted", ours("pod-security.kubernetes.io/enforce-version", "v1.30")),
			merge("namespace restricted", ours("pod-security.kubernetes.io/enforce-version", "latest"))),
	}},
	{name: "SEC-O36 op sets parent or type on a privileged namespace of no tree: refused, unless cl has set adopt", tries: []try{
		refused(op, "a privileged namespace",
			merge("namespace monitors", ours("$D/parent", "payments")),
			merge("namespace monitors", ours("$D/type", "root"))),
		allowed(clara, merge("namespace monitors-too", notes("$D/adopt", "u"))),
		allowed(op,
			merge("namespace monitors-too", `{metadata: {labels: {$D/type: root}, annotations: {$D/adopt: null, $D/lnamespace-uid: u}}}`)),
	}},
	{name: "SEC-O37 op sets bound, released, lnamespace-uid, template, a tree label, ancestry or cascading on plain; on a marked " +
		"namespace, bound with parent nowhere or after it: all refused; SEC-O37 op sets bound on a root, or template or lnamespace-uid on a " +
		"root that no LNamespace made: refused; SEC-O37 op sets parent=nowhere alone on the marked namespace, then parent=payments: both " +
		"allowed; then deletes it: refused; SEC-O37 op makes a bound child and deletes it, and sets template on an LNamespace's root: " +
		"allowed", tries: []try{
		allowed(clara, merge("namespace placed", notes("$D/adopt", "u"))),
		refused(op, "only when it creates a namespace",
			merge("namespace placed", `{metadata: {labels: {$D/parent: nowhere, $D/bound: "true"}}}`),
			merge("namespace payments", ours("$D/bound", `"true"`)),
			merge("namespace handmade", notes("$D/lnamespace-uid", "u"))),
		refused(op, "only on the root of an LNamespace",
			merge("namespace handmade", ours("$D/template", "tmpl")),
			merge("namespace inst", ours("$D/template", "other"))),
		refused(op, "warren-", // both the cage and strict placement refuse; the answer names one of them
			merge("namespace plain", `{metadata: {labels: {$D/type: root}, annotations: {$D/lnamespace-uid: u}}}`),
			merge("namespace plain", `{metadata: {labels: {$D/type: root, $D/template: tmpl}}}`),
			merge("namespace plain", ours("$D/template", "tmpl"))),
		refused(op, "may write only managed namespaces",
			merge("namespace plain", ours("$D/bound", `"true"`)),
			merge("namespace plain", ours("$D/released", `"true"`)),
			merge("namespace plain", notes("$D/lnamespace-uid", "u")),
			merge("namespace plain", ours("mallory.tree.$D/depth", `"1"`)),
			merge("namespace plain", notes("$D/ancestry", "payments/plain")),
			merge("namespace plain", notes("$D/cascading", `"true"`))),
		allowed(op, merge("namespace placed", ours("$D/parent", "nowhere"))),
		refused(op, "only when it creates a namespace", merge("namespace placed", ours("$D/bound", `"true"`))),
		allowed(op, merge("namespace placed", ours("$D/parent", "payments"))),
		refused(op, "may delete bound sub-namespaces", remove("namespace placed")),
		allowed(op, create("namespace pay-made", `{metadata: {labels: {$D/parent: payments, $D/bound: "true"}}}`),
			remove("namespace pay-made"),
			merge("namespace orders", ours("$D/template", "tmpl")), merge("namespace orders", ours("$D/template", "null"))),
	}},
}

const privilegedPod = `{spec: {containers: [{name: c, image: c, securityContext: {privileged: true}}]}}`
