package tenants_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a namespace that has RoleBindings with the operator's names", func() {
	It("ACC-R43 AccessReady names a placed namespace that holds its own warren:users; after its deletion alice has rights there, and "+
		"AccessReady is True", func(ctx SpecContext) {
		f := of(world, "h09")
		tenant, legacy := f.own("payments"), f.own("legacy")
		f.settle(ctx, build.Tenant(tenant).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("bob")))
		own := build.RoleBinding(legacy, "warren:users", "view")
		f.create(ctx, build.Namespace(legacy), own)
		f.label(ctx, legacy, v1alpha1.LabelParent, tenant)
		f.says(ctx, tenant, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
		// Until the API server's policies have seen the label of the namespace, its other copies are missing, too.
		Eventually(ctx, func() string {
			return v1alpha1.FindCondition(f.get(ctx, tenant).Status.Conditions, v1alpha1.ConditionAccessReady).Message
		}).Should(ContainSubstring("RoleBinding warren:users in namespace " + legacy))
		denied(ctx, f.as("alice"), podsIn(legacy))

		Expect(f.Admin().Delete(ctx, own)).To(Succeed())
		f.says(ctx, tenant, v1alpha1.ConditionAccessReady, metav1.ConditionTrue, v1alpha1.ReasonGranted)
		allowed(ctx, f.as("alice"), podsIn(legacy))
	})
})
