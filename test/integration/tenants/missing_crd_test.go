package tenants_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// withoutDefinition deletes a CRD of ours, of which no object is left, while the operator is away.
func withoutDefinition(ctx context.Context, w *devcluster.World, resource string) {
	GinkgoHelper()
	_, err := w.Operator.Stop()
	Expect(err).NotTo(HaveOccurred())
	crd := definitionOf(resource)
	Expect(w.Admin().Delete(ctx, crd)).To(Succeed())
	isGone(ctx, w, crd)
}

func definitionOf(resource string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource + "." + v1alpha1.Domain}}
}

func isGone(ctx context.Context, w *devcluster.World, crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	Eventually(func() error { return w.Admin().Get(ctx, client.ObjectKeyFromObject(crd), crd) }).WithContext(ctx).Should(beNotFound())
}

var _ = Describe("a CRD of ours that isn't there at the start", Ordered, SpecPriority(1), func() {
	var w *devcluster.World
	var f *fixture
	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "d12")
		f = of(w, "d12")
	})
	apply := func(ctx context.Context) {
		GinkgoHelper()
		manifests, err := devcluster.Render("config/overlays/standard")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), manifests.Definitions())).To(Succeed())
	}

	It("FLT-F52 without the CRD of HierarchyConfigurations, the operator ends at its start with exit code 1, and names CRD and next step; "+
		"once it is installed, it works", func(ctx SpecContext) {
		f.settle(ctx, f.payments())
		withoutDefinition(ctx, w, "hierarchyconfigurations")
		Expect(w.Operator.Start(ctx)).To(MatchError(And(ContainSubstring("ended at its start with exit code 1"),
			ContainSubstring("CRD hierarchyconfigurations.tenancy.warren.dev is not installed, and the operator needs it; apply the manifests"))))
		apply(ctx)
		Expect(w.Operator.Start(ctx)).To(Succeed(), "as the kubelet starts it")
		f.grow(ctx, f.own("payments"), f.own("web"))
		hc := build.Hierarchy(f.own("payments"))
		f.create(ctx, hc)
		Eventually(func() ([]metav1.Condition, error) {
			err := f.Admin().Get(ctx, client.ObjectKeyFromObject(hc), hc)
			return hc.Status.Conditions, err
		}).WithContext(ctx).Should(ContainElement(HaveField("Type", string(v1alpha1.ConditionReady))))
	}, SpecTimeout(4*suite.Patience))

	It("FLT-F52 the operator starts without that CRD if the deletion of lnamespaces and subnamespaces waits for it: these and the tenant's "+
		"RoleBindings go; Namespaces remain", func(ctx SpecContext) {
		withoutDefinition(ctx, w, "hierarchyconfigurations")
		tenants, subs := definitionOf("lnamespaces"), definitionOf("subnamespaces")
		Expect(f.Admin().Delete(ctx, tenants)).To(Succeed())
		Expect(f.Admin().Delete(ctx, subs)).To(Succeed())
		Expect(w.Operator.Start(ctx)).To(Succeed(), "the deletion waits for the operator")
		isGone(ctx, w, tenants)
		isGone(ctx, w, subs)
		bindings := &rbacv1.RoleBindingList{}
		Expect(f.Admin().List(ctx, bindings, client.MatchingLabels{v1alpha1.LabelTenant: f.own("payments")})).To(Succeed())
		Expect(bindings.Items).To(BeEmpty())
		for _, name := range []string{"payments", "web"} {
			namespace := build.Namespace(f.own(name))
			Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			Expect(namespace.DeletionTimestamp).To(BeNil())
		}
		apply(ctx)
		f.settle(ctx, f.shop())
		f.grow(ctx, f.own("shop"), f.own("late"))
	}, SpecTimeout(4*suite.Patience))
})
