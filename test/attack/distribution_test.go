package attack_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const (
	notWritten    = "may not take over an object that it did not write as a distributed copy"
	onlyHandsBack = "may only hand back an adopted object"
	adopting      = `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}}`
	// controlling is an owner reference of a kind that isn't served: the garbage collector can't find out whether the owner exists.
	controlling = `{apiVersion: example.com/v1, kind: Gadget, name: g, uid: 0d21e2c4-0000-4000-8000-000000000001, controller: true}`
	handingBack = `{metadata: {labels: {$D/distributed-by: null}, annotations: {$D/adopted: null}}}`
)

// strangers are namespaces and objects that exist before the attacks. Some objects look as if a ResourceDistribution had adopted them.
var strangers = []request{
	create("namespace plain", ``),
	create("namespace argocd", `{metadata: {labels: {$D/protected: "true"}}}`),
	create("secret plain/theirs", `{stringData: {key: mine}}`),
	create("configmap plain/theirs", `{data: {key: mine}}`),
	create("configmap plain/source", `{metadata: {labels: {$D/propagate: update}}, data: {key: mine}}`),
	create("configmap plain/owned", `{metadata: {ownerReferences: [`+controlling+`]}, data: {key: mine}}`),
	create("namespace tree", ours("$D/type", "root")),
	create("configmap plain/adopted", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}, data: {key: one}}`),
	create("configmap plain/handed-none",
		`{metadata: {labels: {$D/distributed-by: news, $D/propagate: none}, annotations: {$D/adopted: "true", $D/select: a=b}}, data: {key: `+
			`one}}`),
	create("configmap plain/handed-back",
		`{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}, data: {key: one}}`),
}

var distributionRow = row{name: "SEC-O32 with component distribution, op creates, changes, locks and deletes distributed copies in " +
	"plain and default: all allowed; SEC-O32 op hands back an adopted object with unchanged data, also if its owner has set " +
	"propagate=none and select: allowed; SEC-O32 op takes over a user's object, sets adopted on its own copy, changes or deletes an " +
	"adopted object, removes adopted alone, or removes a mark: all refused; SEC-O32 op hands back other data, turns a propagated copy " +
	"into a distributed one, or creates a distributed RoleBinding or a Secret in argocd or kube-system: all refused",
	tries: []try{
		allowed(op,
			create("secret plain/news", marked("distributed-by: news", `{stringData: {key: one}}`)),
			create("configmap default/news", marked("distributed-by: news", `{data: {key: one}}`)),
			put("configmap default/news", `{metadata: {annotations: {$D/locked: "true"}}, data: {key: two}}`),
			remove("configmap default/news"),
			put("configmap plain/handed-back", handingBack), put("configmap plain/handed-none", handingBack)),
		refused(op, notWritten,
			put("secret plain/theirs", ours("$D/distributed-by", "news")),
			put("configmap plain/theirs", ours("$D/distributed-by", "news")),
			put("configmap plain/theirs", adopting)),
		refused(op, onlyHandsBack,
			create("configmap plain/born-adopted", adopting),
			put("secret plain/news", adopting),
			put("configmap plain/adopted", `{data: {key: two}}`),
			put("configmap plain/adopted", notes("$D/adopted", "null")),
			remove("configmap plain/adopted")),
		refused(op, "may not take its mark off", put("secret plain/news", ours("$D/distributed-by", "null")),
			put("configmap plain/adopted", `{metadata: {labels: {$D/distributed-by: null}, annotations: {$D/adopted: null}}, data: {key: two}}`)),
		refused(op, "a propagated copy or an access object into a distributed copy",
			create("configmap plain/both", `{metadata: {labels: {$D/distributed-by: news, $D/inherited-from: x}}}`)),
		refused(op, "", put("configmap tree/copied", ours("$D/distributed-by", "news")),
			create("rolebinding plain/news", marked("distributed-by: news", bindingTo("view", "mallory"))),
			create("secret argocd/news", marked("distributed-by: news", `{}`)),
			create("secret kube-system/news", marked("distributed-by: news", `{}`)),
			put("configmap plain/theirs", `{data: {key: two}}`), remove("configmap plain/theirs")),
	}}

// Parts of the content of a ResourceDistribution: its resource, a Secret or a ConfigMap, and its targets.
const (
	regcred = `resource: {apiVersion: v1, kind: Secret, metadata: {name: regcred}, data: {key: b25l}}`
	ca      = `resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: ca}, immutable: true, data: {key: one}}`
	bounded = `, targets: {includedNamespaces: [{name: plain}]}`
)

// resource is the content of a ResourceDistribution to namespace plain alone, of a Secret with the fields in more.
func resource(more string) string {
	return `{spec: {resource: {apiVersion: v1, kind: Secret, ` + more + `}` + bounded + `}}`
}

var contentRow = row{name: "DIST-D79 the policies refuse: no name, other metadata, Warren's keys, types token, bootstrap and Helm, " +
	"kube-root-ca.crt, changes of immutable data and of the type; labels may change", tries: []try{
	allowed(admin,
		create("resourcedistribution regcred", `{spec: {`+regcred+bounded+`}}`),
		create("resourcedistribution ca", `{spec: {`+ca+bounded+`}}`),
		put("resourcedistribution ca", `{spec: {resource: {metadata: {labels: {app: pull}}}}}`)),
	invalid(admin, "metadata.name is required", create("resourcedistribution nameless", resource(`metadata: {labels: {a: b}}`))),
	invalid(admin, "may hold name, labels and annotations only",
		create("resourcedistribution n1", resource(`metadata: {name: a, namespace: kube-system}`)),
		create("resourcedistribution n2", resource(`metadata: {name: a, generateName: b}`)),
		create("resourcedistribution n3", resource(`metadata: {name: a, finalizers: [example.com/hold]}`)),
		create("resourcedistribution n4", resource(`metadata: {name: a, ownerReferences: [`+controlling+`]}`))),
	invalid(admin, "belong to the operator",
		create("resourcedistribution k1", resource(`metadata: {name: a, labels: {$D/propagate: update}}`)),
		create("resourcedistribution k2", resource(`metadata: {name: a, annotations: {x.$D/y: z}}`))),
	invalid(admin, "can't be distributed",
		create("resourcedistribution t1", resource(`metadata: {name: a}, type: kubernetes.io/service-account-token`)),
		create("resourcedistribution t2", resource(`metadata: {name: a}, type: bootstrap.kubernetes.io/token`)),
		create("resourcedistribution t3", resource(`metadata: {name: a}, type: helm.sh/release.v1`)),
		create("resourcedistribution t4", `{spec: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}}}`)),
	invalid(admin, "its data can never change",
		put("resourcedistribution ca", `{spec: {resource: {data: {key: two}}}}`),
		put("resourcedistribution ca", `{spec: {resource: {immutable: null}}}`)),
	invalid(admin, "type of a Secret can't change", put("resourcedistribution regcred", `{spec: {resource: {type: example.com/other}}}`)),
}}

var openRow = row{name: "DIST-D80 erin may not create open-ended RDs or change their data or targets, only annotations and suspend; " +
	"DELETE before Orphan is in force is refused; the garbage collector may change finalizers", tries: []try{
	refused(erin, `user "erin" may not create secrets cluster-wide, as this ResourceDistribution requires`,
		create("resourcedistribution everywhere", `{spec: {`+regcred+`}}`),
		create("resourcedistribution chosen", `{spec: {`+regcred+`, targets: {namespaceLabelSelector: {matchLabels: {a: b}}}}}`)),
	allowed(admin, create("resourcedistribution wide", `{spec: {`+regcred+`, deletionPolicy: Orphan}}`)),
	refused(erin, `user "erin" may not create secrets cluster-wide, as this ResourceDistribution requires`,
		put("resourcedistribution wide", `{spec: {resource: {data: {key: dHdv}}}}`),
		put("resourcedistribution wide", `{spec: {targets: {excludedNamespaces: [{name: argocd}]}}}`)),
	allowed(erin, put("resourcedistribution wide", `{metadata: {annotations: {note: x}}}`),
		put("resourcedistribution wide", `{spec: {suspend: true}}`)),
	refused(admin, "Orphan is not in force on all copies yet", remove("resourcedistribution wide")),
	allowed(garbageCollector, put("resourcedistribution wide", `{metadata: {finalizers: [example.com/hold]}}`),
		put("resourcedistribution wide", `{metadata: {finalizers: null}}`)),
	allowed(admin,
		put("resourcedistribution wide",
			`{status: {observedGeneration: 1, deletionPolicy: Orphan, targets: 0, current: 0, outdated: 0, missing: 0, conflicts: 0, failed: 0}}`,
			"status"),
		remove("resourcedistribution wide")),
}}

var overwriteRow = row{name: "SEC-O33 with component distribution-overwrite, op takes over a Secret or ConfigMap and sets adopted, " +
	"changes its data, and hands it back unchanged: all allowed; SEC-O33 op takes over without adopted, or a source, a propagated copy " +
	"or an object with a controller, or deletes what it took over: all refused; SEC-O33 op removes adopted alone, sets it on a copy that " +
	"it created, or changes the data as it hands an object back: all refused", tries: []try{
	allowed(op,
		put("secret plain/theirs", adopting),
		put("secret plain/theirs", `{stringData: {key: two}}`),
		put("configmap plain/theirs", `{metadata: {labels: {$D/distributed-by: news}, annotations: {$D/adopted: "true"}}, data: {key: two}}`)),
	refused(op, "may take over only a Secret or ConfigMap",
		put("configmap plain/source", adopting),
		put("configmap plain/owned", adopting),
		put("configmap plain/handed-back", ours("$D/distributed-by", "news"))),
	refused(op, "may not delete an adopted object",
		remove("secret plain/theirs"), remove("configmap plain/theirs"),
		put("secret plain/theirs", notes("$D/adopted", "null")),
		put("secret plain/news", notes("$D/adopted", `"true"`)),
		create("configmap plain/born-adopted", adopting)),
	refused(op, "may not take its mark off", put("secret plain/news", ours("$D/distributed-by", "null")),
		put("secret plain/theirs", `{metadata: {labels: {$D/distributed-by: null}, annotations: {$D/adopted: null}}, stringData: {key: three}}`)),
	refused(op, "", put("configmap tree/copied", adopting),
		put("configmap plain/handed-back", `{data: {key: two}}`), remove("configmap plain/handed-back")),
	allowed(op, put("secret plain/theirs", handingBack), remove("secret plain/news")),
}}

var _ = Describe("the cage of a component", func() {
	It("SEC-O32 SEC-O33 DIST-D79 DIST-D80", func(ctx SpecContext) {
		f := &fixture{}
		var err error
		f.World, err = devcluster.Start(ctx, devcluster.Options{
			ControlPlane:    controlplane.Options{Users: users()},
			Components:      []string{"config/components/distribution"},
			Operator:        devcluster.OperatorOptions{Config: kindsConfig},
			WithoutOperator: true,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(f.Stop)
		f.given(ctx, admin, strangers...)
		f.given(ctx, op, create("configmap tree/copied", `{metadata: {labels: {$D/inherited-from: tree}}, data: {key: one}}`))
		f.holds(ctx, distributionRow)
		f.given(ctx, admin,
			create("clusterrole distributors",
				`{rules: [{apiGroups: [$D], resources: [resourcedistributions], verbs: [get, create, update, delete]}]}`),
			create("clusterrolebinding distributors", bindingTo("distributors", "erin")),
			create("clusterrolebinding collectors", bindingTo("distributors", garbageCollector.user)))
		probe := create("resourcedistribution probe", `{spec: {`+regcred+bounded+`}}`)
		for _, by := range []actor{admin, erin} { // until the API server knows their rights
			Eventually(ctx, func(ctx context.Context) error { return probe.send(ctx, f.caller(by).rehearsing()) }).Should(Succeed())
		}
		nameless := create("resourcedistribution nameless", resource(`metadata: {labels: {a: b}}`))
		Eventually(ctx, func(ctx context.Context) error { return nameless.send(ctx, f.caller(admin).rehearsing()) }).
			ShouldNot(Succeed(), "policy distribution is in force: the API server takes a policy on a kind in when it has heard of the kind")
		f.holds(ctx, contentRow)
		f.holds(ctx, openRow)
		f.widen(ctx, "config/components/distribution-overwrite", put("secret plain/theirs", adopting))
		f.holds(ctx, overwriteRow)
	})
})

// widen applies the policy warren-operator-cage-distribution as component has it. It waits until the operator's request proof would
// succeed.
func (f *fixture) widen(ctx context.Context, component string, proof request) {
	GinkgoHelper()
	all, err := devcluster.RenderWith("config/overlays/standard", component)
	Expect(err).NotTo(HaveOccurred())
	for _, u := range all {
		if u.GetKind() == "ValidatingAdmissionPolicy" && u.GetName() == "warren-operator-cage-distribution" {
			Expect(devcluster.Apply(ctx, f.Config(controlplane.Admin), devcluster.Manifests{u})).To(Succeed())
		}
	}
	Eventually(ctx, func(ctx context.Context) error { return proof.send(ctx, f.caller(op).rehearsing()) }).
		Should(Succeed(), "the policy is in force")
}
