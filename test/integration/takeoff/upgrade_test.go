package takeoff_test

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

// Upgrades and downgrades of the operator itself are played by `make e2e-node`.
var _ = Describe("a change of versions", Ordered, func() {
	const configuration = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\nsudo: {mode: Legacy}\n"
	var s site

	BeforeAll(func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{
			// the policies keep a newer operator's keys from all users
			ControlPlane: controlplane.Options{EmulatedVersion: "1.35"}, WithoutPolicies: true,
			Operator: devcluster.OperatorOptions{Manager: manager, Config: configuration},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		s = site{words.Cluster{World: w}, "standard"}
		s.tenant(ctx, "payments")
	})

	It("FLT-U07 an older operator doesn't start with a configuration file that has a newer key, and names the key; the running one "+
		"goes on", func(ctx SpecContext) {
		_, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
			Manager: manager, Kubeconfig: s.Kubeconfig(controlplane.Operator), Dir: filepath.Join(s.Dir, "older"),
			Config: configuration + "newerKey: 1\n",
		})
		Expect(err).To(MatchError(ContainSubstring("newerKey")))
		s.changeSource(ctx, "while an older one can't start")
	}, SpecTimeout(2*suite.Patience))

	It("FLT-U07 a newer field of an LNamespace is kept while the newer CRD is stored, and pruned when the older CRD "+
		"replaces it", func(ctx SpecContext) {
		older := s.lnamespaceDefinition(ctx)
		newer := older.DeepCopy()
		properties := newer.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		spec := properties["spec"]
		spec.Properties["newer"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		properties["spec"] = spec
		Expect(s.Admin().Update(ctx, newer)).To(Succeed())

		tenant := build.Tenant("payments").Object()
		Eventually(func(g Gomega) { // the API server takes a moment to serve the new schema
			g.Expect(s.Admin().Patch(ctx, tenant, client.RawPatch(apitypes.MergePatchType, []byte(`{"spec":{"newer":"kept"}}`)))).To(Succeed())
			g.Expect(s.newerField(ctx)).To(Equal("kept"))
		}).WithContext(ctx).Should(Succeed())
		s.listUsers(ctx, "alice", "eve")
		Expect(s.newerField(ctx)).To(Equal("kept"), "the operator has written the status")
		Expect(s.Operator.Restart(ctx)).To(Succeed())
		s.listUsers(ctx, "alice", "eve", "frank")
		Expect(s.newerField(ctx)).To(Equal("kept"))

		current := s.lnamespaceDefinition(ctx)
		current.Spec = older.Spec
		Expect(s.Admin().Update(ctx, current)).To(Succeed())
		Eventually(s.newerField).WithContext(ctx).Should(BeEmpty(), "pruned")
		s.listUsers(ctx, "alice")
		s.ready(ctx, "payments")
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U07 a newer label of our domain on a Namespace is ignored and kept by the older operator", func(ctx SpecContext) {
		newer := v1alpha1.Domain + "/newer"
		s.Create(ctx, build.Namespace("legacy", newer, "kept"))
		Expect(s.Admin().Patch(ctx, build.Namespace("legacy"),
			client.RawPatch(apitypes.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelParent+`":"payments"}}}`)))).To(Succeed())
		Eventually(s.copied("legacy", "while an older one can't start")).WithContext(ctx).Should(BeTrue(), "the operator has placed it")
		namespace := build.Namespace("legacy")
		Expect(s.Read(namespace)(ctx)).To(Succeed())
		Expect(namespace.Labels).To(HaveKeyWithValue(newer, "kept"))
	}, SpecTimeout(2*suite.Patience))
})

var _ = Describe("a minor upgrade of Kubernetes", func() {
	It("FLT-U09 when a minor upgrade of Kubernetes replaces the API server, the operator is not restarted, writes nothing because of it, "+
		"and works as before", func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{
			ControlPlane: controlplane.Options{EmulatedVersion: "1.35"},
			Operator:     devcluster.OperatorOptions{Manager: manager},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		s := site{words.Cluster{World: w}, "standard"}
		s.tenant(ctx, "payments")
		before, operator := s.state(ctx), s.Operator.Process().PID()

		Expect(s.ControlPlane.UpgradeAPIServer(ctx)).To(Succeed())
		version, _ := s.kubectl(ctx, controlplane.Admin, "get --raw /version")
		Expect(version).To(ContainSubstring(`"minor": "36"`))
		s.worksAsBefore(ctx, "payments")
		s.changeSource(ctx, "after the upgrade")
		s.changeSource(ctx, "v")
		Expect(s.state(ctx)).To(Equal(before), "nothing is written because of the upgrade")
		Expect(s.Operator.Process().PID()).To(Equal(operator))
		Expect(s.Operator.Process().Running()).To(BeTrue(), "the same process all the time")
	}, SpecTimeout(15*time.Minute))
})

func (s site) lnamespaceDefinition(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lnamespaces.tenancy.warren.dev"}}
	Expect(s.Read(crd)(ctx)).To(Succeed())
	return crd
}

func (s site) newerField(ctx context.Context) (string, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LNamespace"))
	err := s.Admin().Get(ctx, client.ObjectKey{Name: "payments"}, u)
	value, _, _ := unstructured.NestedString(u.Object, "spec", "newer")
	return value, err
}

// listUsers replaces spec.users of tenant payments by these names, and waits until binding warren:users in payments-web has exactly them.
// It patches only spec.users: an update would remove fields that this test's types don't know.
func (s site) listUsers(ctx context.Context, names ...string) {
	GinkgoHelper()
	tenant := build.Tenant("payments").Object()
	before := tenant.DeepCopy()
	tenant.Spec.Users = build.Users(names...)
	Expect(s.Admin().Patch(ctx, tenant, client.MergeFrom(before))).To(Succeed())
	binding := build.RoleBinding("payments-web", "warren:users", "")
	Eventually(func(g Gomega) {
		g.Expect(s.Read(binding)(ctx)).To(Succeed())
		var bound []string
		for _, subject := range binding.Subjects {
			bound = append(bound, subject.Name)
		}
		g.Expect(bound).To(ConsistOf(names))
	}).WithContext(ctx).Should(Succeed(), "rights of %v", names)
}

// changeSource changes the source and waits for its copy.
func (s site) changeSource(ctx context.Context, value string) {
	GinkgoHelper()
	source := build.Secret("payments", "shared", "")
	Expect(s.Read(source)(ctx)).To(Succeed())
	source.Data["key"] = []byte(value)
	Expect(s.Admin().Update(ctx, source)).To(Succeed())
	Eventually(s.copied("payments-web", value)).WithContext(ctx).Should(BeTrue())
}
