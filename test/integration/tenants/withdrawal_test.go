package tenants_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// placeBelow makes a tenant with two namespaces that are placed, one below the other, and waits for its people's rights in both.
func (f *fixture) placeBelow(ctx context.Context) (tenant, upper, lower string) {
	GinkgoHelper()
	tenant, upper, lower = f.own("payments"), f.own("upper"), f.own("lower")
	f.settle(ctx, build.Tenant(tenant).Users(f.own("alice"), f.own("dave")).Managers(f.own("mia")).Sudoers(f.own("bob"), f.own("carol")))
	f.create(ctx, build.Child(upper, tenant), build.Child(lower, upper))
	for _, namespace := range []string{upper, lower} {
		allowed(ctx, f.as("alice"), podsIn(namespace))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(namespace))
		allowed(ctx, f.sudo("carol", "payments"), podsIn(namespace))
	}
	return tenant, upper, lower
}

// replaceSome takes alice and bob off the lists of a tenant, and adds erin as a user.
func (f *fixture) replaceSome(ctx context.Context, tenant string) {
	GinkgoHelper()
	f.set(ctx, f.as("mia"), tenant, map[string]any{
		"users": build.Users(f.own("dave"), f.own("erin")), "sudoers": build.Users(f.own("carol")),
	})
}

// onlyWithdrawn expects that alice and bob have lost what they had in a namespace, that dave and carol have not, and that erin
// gets nothing.
func (f *fixture) onlyWithdrawn(ctx context.Context, namespace string) {
	GinkgoHelper()
	soonDenied(ctx, f.as("alice"), podsIn(namespace))
	Eventually(func(g Gomega) {
		bindings := &rbacv1.RoleBindingList{}
		g.Expect(f.Admin().List(ctx, bindings, client.InNamespace(namespace))).To(Succeed())
		for _, binding := range bindings.Items {
			for _, subject := range binding.Subjects {
				g.Expect(subject.Name).NotTo(BeElementOf(f.own("alice"), f.own("bob")), "in RoleBinding %s", binding.Name)
			}
		}
	}).WithContext(ctx).Should(Succeed())
	soonDenied(ctx, f.sudo("bob", "payments"), podsIn(namespace))
	allowed(ctx, f.as("dave"), podsIn(namespace))
	allowed(ctx, f.sudo("carol", "payments"), podsIn(namespace))
	Consistently(func() error { return podsIn(namespace).send(ctx, f.as("erin")) }).
		WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beDenied(), "what is given is frozen")
}

// endTenant deletes a tenant, and expects that none of its bindings stays in those namespaces.
func (f *fixture) endTenant(ctx context.Context, tenant string, namespaces ...string) {
	GinkgoHelper()
	Expect(f.Admin().Delete(ctx, build.Tenant(tenant).Object())).To(Succeed())
	for _, namespace := range namespaces {
		f.Gone(ctx, build.RoleBinding(namespace, "warren:users", ""), build.RoleBinding(namespace, "warren:sudoers", ""),
			build.RoleBinding(namespace, "warren:sudo", ""))
		soonDenied(ctx, f.as("dave"), podsIn(namespace))
	}
}

var _ = Describe("withdrawal is never halted", func() {
	for _, mode := range []struct {
		name, protected, cycle, stranded string
		fixture                          func(key string) *fixture
	}{
		{"Legacy", "h03", "h04", "h05", func(key string) *fixture { return of(world, key) }},
		{"Constrained", "h06", "h07", "h08", constrainedly},
	} {
		It("PROP-H3 in a namespace that became protected, removed people are soon denied and in no RoleBinding; others keep rights, erin "+
			"gets none; with the tenant, its bindings are deleted: mode "+mode.name, func(ctx SpecContext) {
			f := mode.fixture(mode.protected)
			tenant, _, lower := f.placeBelow(ctx)
			protect := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null,%q:"true"}}}`, v1alpha1.LabelParent,
				v1alpha1.LabelProtected))
			Expect(f.Admin().Patch(ctx, build.Namespace(lower), protect)).To(Succeed())
			f.replaceSome(ctx, tenant)
			f.onlyWithdrawn(ctx, lower)
			f.endTenant(ctx, tenant, lower)
		})

		It("PROP-H4 in both namespaces of a cycle, removed people are soon denied and in no RoleBinding; others keep rights, erin gets none; "+
			"with the tenant, its bindings are deleted: mode "+mode.name, func(ctx SpecContext) {
			f := mode.fixture(mode.cycle)
			tenant, upper, lower := f.placeBelow(ctx)
			f.label(ctx, upper, v1alpha1.LabelParent, lower)
			for _, namespace := range []string{upper, lower} {
				Eventually(func() (string, error) {
					c, err := f.Reported(ctx, namespace, v1alpha1.ConditionHalted)
					return c.Reason, err
				}).WithContext(ctx).Should(Equal(string(v1alpha1.ReasonInCycle)))
			}
			f.replaceSome(ctx, tenant)
			f.onlyWithdrawn(ctx, upper)
			f.onlyWithdrawn(ctx, lower)
			f.endTenant(ctx, tenant, upper, lower)
		})

		It("PROP-H5 below a missing parent, and one level deeper, removed people are denied and in no RoleBinding; others keep rights, erin "+
			"gets none; with the tenant, its bindings are deleted: mode "+mode.name, func(ctx SpecContext) {
			f := mode.fixture(mode.stranded)
			tenant, upper, lower := f.placeBelow(ctx)
			f.label(ctx, upper, v1alpha1.LabelParent, f.own("missing"))
			for _, namespace := range []string{upper, lower} {
				Eventually(func() (string, error) {
					c, err := f.Reported(ctx, namespace, v1alpha1.ConditionHalted)
					return string(c.Status), err
				}).WithContext(ctx).Should(Equal("True"))
			}
			f.replaceSome(ctx, tenant)
			f.onlyWithdrawn(ctx, upper)
			f.onlyWithdrawn(ctx, lower)
			f.endTenant(ctx, tenant, upper, lower)
		})
	}
})
