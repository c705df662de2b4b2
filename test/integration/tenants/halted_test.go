package tenants_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// strand makes a tenant with a namespace that is placed below mid, and deletes mid: the namespace is halted from then on.
func (f *fixture) strand(ctx context.Context) (tenant, halted string) {
	GinkgoHelper()
	tenant, halted = f.own("payments"), f.own("stranded")
	f.settle(ctx, build.Tenant(tenant).Users(f.own("alice"), f.own("dave")).Managers(f.own("mia")).Sudoers(f.own("bob")))
	f.grow(ctx, tenant, f.own("mid"))
	f.create(ctx, build.Child(halted, f.own("mid")))
	for _, binding := range []string{"warren:sudoers", "warren:users"} {
		f.Exists(ctx, build.RoleBinding(halted, binding, ""))
	}
	allowed(ctx, f.as("alice"), podsIn(halted))
	Expect(f.Admin().Delete(ctx, build.SubNamespace(tenant, f.own("mid")))).To(Succeed())
	f.Gone(ctx, build.Namespace(f.own("mid")))
	Eventually(func() (metav1.ConditionStatus, error) {
		c, err := f.Reported(ctx, halted, v1alpha1.ConditionHalted)
		return c.Status, err
	}).WithContext(ctx).Should(Equal(metav1.ConditionTrue))
	return tenant, halted
}

var _ = Describe("a halted namespace", func() {
	It("PROP-H1 when a manager replaces alice by erin, alice is soon denied in a halted namespace, dave keeps his rights, erin has none; "+
		"after the halt, erin has rights", func(ctx SpecContext) {
		f := of(world, "h01")
		tenant, halted := f.strand(ctx)
		f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("dave"), f.own("erin"))...))
		soonDenied(ctx, f.as("alice"), podsIn(halted))
		allowed(ctx, f.as("dave"), podsIn(halted))
		Consistently(func() error { return f.as("erin").List(ctx, &corev1.PodList{}, client.InNamespace(halted)) }).
			WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beDenied(), "what is given is frozen")

		f.label(ctx, halted, v1alpha1.LabelParent, tenant)
		Eventually(func() error { return f.as("erin").List(ctx, &corev1.PodList{}, client.InNamespace(halted)) }).
			WithContext(ctx).Should(Succeed(), "the namespace has a place again")
		denied(ctx, f.as("alice"), podsIn(halted))
		allowed(ctx, f.as("dave"), podsIn(halted))
	})

	It("PROP-H2 when the tenant is deleted, a halted namespace loses warren:sudoers and warren:users; a new LNamespace of that name gives "+
		"eve no right there", func(ctx SpecContext) {
		f := of(world, "h02")
		tenant, halted := f.strand(ctx)
		Expect(f.Admin().Delete(ctx, build.Tenant(tenant).Object())).To(Succeed())
		f.Gone(ctx, build.RoleBinding(halted, "warren:sudoers", ""), build.RoleBinding(halted, "warren:users", ""))
		soonDenied(ctx, f.as("alice"), podsIn(halted))
		f.Gone(ctx, build.Tenant(tenant).Object())

		f.settle(ctx, build.Tenant(tenant).Users(f.own("eve")).Managers(f.own("eve")).Sudoers(f.own("eve")))
		Consistently(func() ([]rbacv1.RoleBinding, error) {
			bindings := &rbacv1.RoleBindingList{}
			err := f.Admin().List(ctx, bindings, client.InNamespace(halted))
			return bindings.Items, err
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(BeEmpty())
		denied(ctx, f.sudo("eve", "payments"), podsIn(halted))
	})
})
