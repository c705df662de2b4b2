package attack_test

// What exists before the attacks. Namespaces and objects that no row changes have the names of docs/behaviour/security.md. A row that
// changes something has objects of its own.

var tenants = []request{
	create("lnamespace payments", `{spec: {
  users: [{kind: User, name: alice}], managers: [{kind: User, name: mia}], sudoers: [{kind: User, name: bob}],
  limits: {subNamespaces: 50, depth: 4}, billing: {costCenter: "4711"}}}`),
	create("lnamespace victim", `{spec: {users: [{kind: User, name: dave}]}}`),
	create("lnamespace orders", `{spec: {managers: [{kind: User, name: mia}]}}`),
	create("lnamespace doomed", ``),
}

// subNamespaces of payments. All but pay-web belong to the row that changes them.
var subNamespaces = []string{
	"pay-web", "pay-labelled", "pay-treeless", "pay-held", "pay-moved", "pay-foreground", "pay-ended", "pay-closed",
	"pay-swept", "pay-bound", "pay-quota", "pay-seed", "pay-service", "pay-hardened", "pay-deleted", "pay-released",
}

// sources are objects in payments that are copied to all its sub-namespaces.
var sources = []request{
	create("secret payments/s", `{metadata: {labels: {$D/propagate: update}}, stringData: {key: one}}`),
	create("configmap payments/seed", `{metadata: {labels: {$D/propagate: create}}, data: {key: one}}`),
	create("service payments/web", `{metadata: {labels: {$D/propagate: update}}, spec: {selector: {app: web}, ports: [{port: 80}]}}`),
	create("resourcequota payments/quota", `{metadata: {labels: {$D/propagate: update}}, spec: {hard: {count/configmaps: "500"}}}`),
}

// webhook is a webhook's content without the closing brace, so that fields can be appended.
const webhook = `{name: none.$D, rules: [{apiGroups: [nobody.$D], apiVersions: [v1], operations: [CREATE], resources: [nothing]}],
  clientConfig: {service: {namespace: warren-system, name: warren-webhook}}, sideEffects: None,
  admissionReviewVersions: [v1], failurePolicy: Fail`

// unheardOf is an owner reference of a kind that isn't served. The garbage collector can't look the owner up, so it never deletes the
// object.
const unheardOf = `{apiVersion: nowhere.example.com/v1, kind: Nothing, name: nothing, uid: 0d21e2c4-0000-4000-8000-000000000001}`

const dangling = `{apiVersion: $D/v1alpha1, kind: LNamespace, name: nobody, uid: 0d21e2c4-0000-4000-8000-000000000000}`

// strewn are objects that a cluster admin and users create while the operator is stopped.
var strewn = []request{
	create("namespace plain", ``),
	create("namespace meadow", ``),
	create("namespace carols", ``),
	create("namespace pasture", ``),
	create("rolebinding pasture/carols", bindingTo("cluster-admin", "carol")),
	create("namespace argocd", `{metadata: {labels: {$D/protected: "true"}}}`),
	create("namespace tmpl", `{metadata: {labels: {$D/type: template}}}`),
	create("namespace inst", `{metadata: {labels: {$D/template: tmpl}}}`),
	create("namespace owned", `{metadata: {annotations: {$D/adopt: "true"}, ownerReferences: [`+unheardOf+`]}}`),
	create("namespace handmade", `{metadata: {labels: {$D/type: root}}}`),
	create("namespace free", `{metadata: {labels: {$D/type: root}}}`),
	// leaving takes namespace left out of its tree later. Until then it is in the tree, so that the operator's token can write in it.
	create("namespace left", `{metadata: {labels: {$D/parent: payments, payments.tree.$D/depth: "1", team: a, tier: web},
  annotations: {$D/inherited: "team,@memo", memo: b, other: c}}}`),
	create("namespace cleaned", `{metadata: {labels: {payments.tree.$D/depth: "1", cleaned.tree.$D/depth: "0", team: a, tier: web},
  annotations: {$D/inherited: "team,@memo", memo: b, other: c}}}`),
	// Released by the operator; the policies still guard them.
	create("namespace guarded", `{metadata: {labels: {$D/released: "true", pod-security.kubernetes.io/enforce: baseline},
  annotations: {$D/inherited: pod-security.kubernetes.io/enforce}}}`),
	create("namespace pay-let-go", `{metadata: {labels: {$D/released: "true"}}}`),
	create("rolebinding guarded/bobs", bindingTo("cluster-admin", "bob")),
	create("rolebinding pay-let-go/bobs", bindingTo("cluster-admin", "bob")),
	create("namespace restricted", `{metadata: {labels: {$D/parent: payments, pod-security.kubernetes.io/enforce: restricted,
  pod-security.kubernetes.io/enforce-version: v1.29}}}`),
	// This namespace has the annotation of a tenant's root, but not the label, so that component strict-placement allows what follows.
	create("namespace monitors",
		`{metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}, annotations: {$D/lnamespace-uid: u}}}`),
	create("namespace monitors-too", privileged),
	create("namespace placed", ``),
	create("namespace levelled", `{metadata: {labels: {$D/template: tmpl, pod-security.kubernetes.io/enforce: baseline}}}`),
	create("rolebinding levelled/carols", bindingTo("cluster-admin", "carol")),
	// Protected later (see leaving), when it has objects of the operator.
	create("namespace walled", `{metadata: {labels: {$D/parent: payments}}}`),
	create("rolebinding walled/theirs", bindingTo("view", "dave")),
	// Objects of a user that have the annotation of an exported copy, but not its label.
	create("configmap plain/exported", exported),
	create("configmap pay-web/exported", exported),
	create("secret plain/theirs", `{stringData: {key: mine}}`),
	create("configmap plain/theirs", `{data: {key: mine}}`),
	create("secret default/theirs", `{stringData: {key: mine}}`),
	create("rolebinding tmpl/carols", bindingTo("cluster-admin", "carol")),
	merge("namespace payments", `{metadata: {labels: {pod-security.kubernetes.io/enforce: baseline}}}`),
	merge("namespace pay-web", `{metadata: {labels: {pod-security.kubernetes.io/enforce: baseline}}}`),

	create("resourcequota pay-quota/own", `{spec: {hard: {count/pods: "5"}}}`),
	create("resourcequota pay-web/counted", `{spec: {hard: {count/pods: "5"}}}`),
	create("event pay-web/theirs", eventOf("kubelet", `{apiVersion: v1, kind: Pod, namespace: pay-web, name: web}`)),
	create("event default/theirs", eventOf("kubelet", `{apiVersion: v1, kind: Node, name: one}`)),
	create("lnamespace owned", ``),
	// As if someone had made the tenant by server-side apply as field manager warren. An apply with fewer fields then removes the others.
	jsonPatch("lnamespace payments", `[{op: replace, path: /metadata/managedFields, value: [{manager: warren, operation: Apply,
  apiVersion: $D/v1alpha1, fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:finalizers": {'v:"$D/lnamespace"': {}}},
  "f:spec": {"f:limits": {"f:depth": {}, "f:subNamespaces": {}}}}}]}]`),
	create("configmap pay-web/own", `{data: {key: mine}}`),
	create("configmap pay-web/mode", `{data: {key: mine}}`),
	create("configmap plain/handed", `{data: {key: mine}}`),
	create("configmap pay-web/adoptable", `{data: {key: mine}}`),
	create("rolebinding left/unmarked",
		`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: User, apiGroup: `+
			`rbac.authorization.k8s.io, name: dave}]}`),

	create("rolebinding plain/carols", bindingTo("cluster-admin", "carol")),
	create("rolebinding carols/carols", bindingTo("cluster-admin", "carol")),
	create("clusterrolebinding claras", bindingTo("cluster-admin", "clara")),
	create("clusterrole make-namespaces", `{rules: [{apiGroups: [""], resources: [namespaces], verbs: [create]}]}`),
	create("clusterrolebinding make-namespaces", bindingTo("make-namespaces", "erin")),
	create("clusterrole one-namespace",
		`{rules: [{apiGroups: [""], resources: [namespaces], resourceNames: [pay-web], verbs: [get, update, patch]}]}`),
	create("clusterrolebinding one-namespace", bindingTo("one-namespace", "named")),
	create("clusterrole patch-namespaces", `{rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, patch]}]}`),
	create("clusterrolebinding patch-namespaces", bindingTo("patch-namespaces", "patcher")),
	create("clusterrole update-namespaces", `{rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, update, patch]}]}`),
	create("clusterrolebinding update-namespaces", bindingTo("update-namespaces", "updater")),
	// Rights that somebody granted to the operator and the exporter by mistake. The policies must refuse what RBAC then allows.
	create("clusterrole mistaken", `{rules: [{apiGroups: [""], resources: [namespaces/finalize], resourceNames: [inst], verbs: [update]}]}`),
	create("clusterrolebinding mistaken", bindingTo("mistaken", op.user)),
	create("clusterrole mistaken-bill",
		`{rules: [{apiGroups: [$D], resources: [lnamespaces], verbs: [patch]}, {apiGroups: [""], resources: [events], verbs: [create, patch]}]}`),
	create("clusterrolebinding mistaken-bill", bindingTo("mistaken-bill", exporter.user)),
	create("clusterrole make-lnamespaces", `{rules: [{apiGroups: [$D], resources: [lnamespaces], verbs: [create]}]}`),
	create("clusterrolebinding make-lnamespaces", bindingTo("make-lnamespaces", "creator")),
	create("clusterrole bind-view", `{rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterrolebindings], verbs: [create]},
  {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [view], verbs: [bind]}]}`),
	create("clusterrolebinding bind-view", bindingTo("bind-view", "binder")),
	// A group of sudoers that was bound before the policies were installed.
	create("rolebinding plain/standing", binding("view", group("old-sudoers"))),
	// These have the name of Warren's configurations, which the operator may change. Their webhook matches no request, so it is never
	// called.
	create("validatingwebhookconfiguration warren", `{webhooks: [`+webhook+`}]}`),
	create("mutatingwebhookconfiguration warren", `{webhooks: [`+webhook+`, reinvocationPolicy: Never}]}`),
	create("role pay-web/deployer", `{rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, patch]}]}`),
	create("rolebinding pay-web/deployer",
		`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}, subjects: [{kind: ServiceAccount, namespace: pay-web, `+
			`name: deployer}]}`),
	create("clusterrolebinding robots",
		`{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, namespace: `+
			`kube-system, name: robot}]}`),
}

// written are the objects that the operator's token writes.
var written = []request{
	create("rolebinding left/marked", marked("access: users", bindingTo("view", "dave"))),
	create("rolebinding walled/shrunk", accessCopy("alice", "dave")),
	create("rolebinding walled/kept", accessCopy("alice", "dave")),
	create("rolebinding walled/withdrawn", accessCopy("alice")),
	create("rolebinding walled/copied", marked("inherited-from: payments", bindingTo("view", "dave"))),
	create("configmap walled/copied", `{metadata: {labels: {$D/inherited-from: payments, $D/access: users}}, data: {key: one}}`),
	create("rolebinding levelled/ivans", marked("inherited-from: tmpl", bindingTo("cluster-admin", "ivan"))),
	create("configmap pay-web/forged-by-op", ours("$D/inherited-from", "victim")),
	create("configmap left/copied", `{metadata: {labels: {$D/inherited-from: payments}}, data: {key: one}}`),
}

// distributed are copies like those that the operator writes with component distribution. Here a cluster admin creates them.
var distributed = []request{
	create("configmap plain/free", `{metadata: {labels: {$D/distributed-by: news}}, data: {key: one}}`),
	create("configmap plain/given", `{metadata: {labels: {$D/distributed-by: news}}, data: {key: one}}`),
	create("configmap plain/kept", `{metadata: {labels: {$D/distributed-by: news}}, data: {key: one}}`),
	create("configmap plain/locked", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/locked: "true"}}, data: {key: one}}`),
	create("configmap plain/locked-too",
		`{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/locked: "true"}}, data: {key: one}}`),
	create("configmap plain/adopted", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}, data: {key: one}}`),
}

// leaving takes namespaces left and walled out of their tree, and makes walled protected.
var leaving = []request{
	merge("namespace left", `{metadata: {labels: {$D/parent: null}}}`),
	merge("namespace walled", `{metadata: {labels: {$D/parent: null, $D/protected: "true"}}}`),
}

// bindingTo is the content of a binding of one ClusterRole to one user.
func bindingTo(clusterRole, user string) string {
	return `{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "` + clusterRole +
		`"}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "` + user + `"}]}`
}

// exported is the content of an object that was a copy once.
const exported = `{metadata: {annotations: {$D/source-hash: "update:0123456789abcdef:0123456789abcdef0123456789abcdef"}}, data: {key: ` +
	`mine}}`

// accessCopy is the content of a copy of an access object with these users.
func accessCopy(users ...string) string {
	var subjects []string
	for _, name := range users {
		subjects = append(subjects, user(name))
	}
	return `{metadata: {labels: {$D/access: users, $D/inherited-from: payments}, annotations: {$D/lnamespace-uid: u, $D/source-hash: ` +
		`"update:0:1"}}, ` +
		binding("view", subjects...)[1:]
}

// marked adds one of Warren's labels to the content body; mark is written KEY: VALUE.
func marked(mark, body string) string {
	return `{metadata: {labels: {$D/` + mark + `}}, ` + body[1:]
}

// eventOf is the content of an Event that a component writes about an object.
func eventOf(component, about string) string {
	return `{involvedObject: ` + about + `, reason: Noted, message: all is well, type: Normal, source: {component: ` + component + `}}`
}
