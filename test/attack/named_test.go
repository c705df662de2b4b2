package attack_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// holding is the content of a ResourceDistribution of a Secret with these targets.
func holding(secret, targets string) string {
	return `{spec: {resource: {apiVersion: v1, kind: Secret, metadata: {name: ` + secret + `}, data: {key: b25l}}, targets: ` + targets + `}}`
}

// withheld expects for a while that a target doesn't exist.
func (f *fixture) withheld(ctx context.Context, target string) {
	GinkgoHelper()
	Consistently(ctx, func(ctx context.Context) any { return f.look(ctx, target) }).
		WithTimeout(test.Quiet(suite.Patience)).Should(BeNil(), target)
}

// says waits until condition Ready of a ResourceDistribution has this reason.
func (f *fixture) says(ctx context.Context, distribution string, reason v1alpha1.Reason) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		rd := &v1alpha1.ResourceDistribution{}
		err := f.Admin().Get(ctx, client.ObjectKey{Name: distribution}, rd)
		if ready := v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			return ready.Reason, err
		}
		return "", err
	}).Should(Equal(string(reason)), distribution)
}

// forgedNames removes the record of named namespaces: any new namespace with such a name would then get the copy.
const forgedNames = `{status: {named: null}}`

var _ = Describe("a name that a ResourceDistribution names", Ordered, func() {
	f := &fixture{}
	BeforeAll(func(ctx SpecContext) {
		var err error
		f.World, err = devcluster.Start(ctx, devcluster.Options{
			ControlPlane: controlplane.Options{Users: users()},
			Components:   []string{"config/components/distribution"},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(f.Stop)
		f.given(ctx, admin,
			create("lnamespace payments", `{spec: {users: [{kind: User, name: alice}]}}`),
			create("namespace mon", ``), create("namespace tree", ours("$D/type", "root")), create("namespace erins", ``),
			create("rolebinding erins/erin", bindingTo("admin", "erin")),
			create("clusterrole distributors",
				`{rules: [{apiGroups: [$D], resources: [resourcedistributions, resourcedistributions/status], verbs: ["*"]}]}`),
			create("clusterrolebinding distributors", bindingTo("distributors", "erin")))
		f.appears(ctx, "rolebinding payments/warren:users")
	})

	It("SEC-C40 a namespace, or root of a tree, that a ResourceDistribution names is deleted, and others make it again: "+
		"NamespaceReplaced, and the new one has no copy; SEC-C40 erin, who may write the status of ResourceDistributions, removes "+
		"status.named: refused", func(ctx SpecContext) {
		f.given(ctx, admin, create("resourcedistribution mon", holding("mon", `{includedNamespaces: [{name: mon}]}`)),
			create("resourcedistribution tree", holding("tree", `{trees: [tree]}`)))
		f.given(ctx, erin, create("resourcedistribution erins", holding("erins", `{includedNamespaces: [{name: erins}]}`)))
		for name, copied := range map[string]string{"mon": "secret mon/mon", "tree": "secret tree/tree", "erins": "secret erins/erins"} {
			f.appears(ctx, copied)
			f.given(ctx, admin, remove("namespace "+name))
			f.gone(ctx, "namespace "+name)
		}
		f.given(ctx, alice, create("subnamespace payments/mon", ``), create("subnamespace payments/tree", ``))
		f.given(ctx, admin, create("namespace erins", ``)) // of another user
		for name, copied := range map[string]string{"mon": "secret mon/mon", "tree": "secret tree/tree", "erins": "secret erins/erins"} {
			f.appears(ctx, "namespace "+name)
			f.says(ctx, name, v1alpha1.ReasonNamespaceReplaced)
			f.withheld(ctx, copied)
		}
		f.holds(ctx, row{tries: []try{
			refused(erin, "only the operator and cluster administrators may write the status",
				merge("resourcedistribution erins", forgedNames, "status"), merge("resourcedistribution mon", forgedNames, "status")),
		}})
	})

	It("SEC-C42 if alice makes a namespace or root as soon as a ResourceDistribution names it, the distribution reports "+
		"NamespaceReplaced, and no copy is there", func(ctx SpecContext) {
		f.given(ctx, admin, create("resourcedistribution ghosts", holding("ghosts", `{includedNamespaces: [{name: ghost}]}`)),
			create("resourcedistribution woods", holding("woods", `{trees: [wood]}`)))
		f.given(ctx, alice, create("subnamespace payments/ghost", ``), create("subnamespace payments/wood", ``))
		for name, rd := range map[string]string{"ghost": "ghosts", "wood": "woods"} {
			f.appears(ctx, "namespace "+name)
			f.says(ctx, rd, v1alpha1.ReasonNamespaceReplaced)
			f.withheld(ctx, "secret "+name+"/"+rd)
		}
	})

	It("SEC-C41 a ResourceDistribution to all namespaces with excludedTrees [payments] puts no copy into payments, or into a "+
		"sub-namespace that alice makes there later", func(ctx SpecContext) {
		f.given(ctx, admin, create("resourcedistribution kept", holding("kept", `{excludedTrees: [payments]}`)))
		f.appears(ctx, "secret default/kept")
		f.given(ctx, alice, create("subnamespace payments/later", ``))
		f.appears(ctx, "namespace later")
		f.withheld(ctx, "secret later/kept")
		f.withheld(ctx, "secret payments/kept")
	})
})
