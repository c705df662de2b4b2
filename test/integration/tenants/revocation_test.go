package tenants_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// sudoers is the part of a spec that lists the sudoers.
func sudoers(subjects ...v1alpha1.Subject) map[string]any {
	if subjects == nil {
		subjects = []v1alpha1.Subject{}
	}
	return map[string]any{"sudoers": subjects}
}

var _ = Describe("a sudoer who is removed", func() {
	It("ACC-S17 removed in payments, bob loses that sudo soon, keeps shop's at every moment, and one reference stays; removed in shop "+
		"too, he has no self pair, and can't impersonate himself", func(ctx SpecContext) {
		f := of(world, "s17")
		f.settle(ctx, f.payments(), f.shop())
		payments, shop, bob := f.own("payments"), f.own("shop"), f.own("bob")
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		allowed(ctx, f.sudo("bob", "shop"), podsIn(shop))
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(payments, shop))

		stop := throughout(ctx, f.sudo("bob", "shop"), podsIn(shop))
		f.set(ctx, f.as("mia"), payments, sudoers())
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(shop))
		f.event(ctx, payments, v1alpha1.ReasonAccessRevoked, "sudoers: removed ")
		Expect(stop()).To(Succeed(), "sudo of shop at every moment")

		f.set(ctx, f.as("mia"), shop, sudoers())
		soonDenied(ctx, f.sudo("bob", "shop"), podsIn(shop))
		f.Gone(ctx, pair("warren:self:"+bob)...)
		soonDenied(ctx, f.becoming("bob", bob), podsIn(shop))
	})

	It("ACC-S19 after bob was removed and added again 50 times, his sudo works, and his self pair has exactly one unmarked reference for "+
		"each tenant", func(ctx SpecContext) {
		f := of(world, "s19")
		f.settle(ctx, f.payments(), f.shop())
		payments, shop, bob := f.own("payments"), f.own("shop"), f.own("bob")
		for range 50 {
			f.set(ctx, f.Admin(), payments, sudoers())
			f.set(ctx, f.Admin(), payments, sudoers(build.Users(bob)...))
		}
		f.ready(ctx, payments)
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(payments, shop))
		Consistently(f.references(ctx, bob)).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(ConsistOf(payments, shop))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
	})

	It("ACC-S20 two tenants remove bob while a third adds him; his self pair exists, with a reference to the third "+
		"only", func(ctx SpecContext) {
		f := of(world, "s20")
		carols := f.own("carols")
		f.settle(ctx, f.payments(), f.shop(), build.Tenant(carols))
		var together sync.WaitGroup
		for tenant, list := range map[string]map[string]any{
			f.own("payments"): sudoers(), f.own("shop"): sudoers(), carols: sudoers(build.Users(f.own("bob"))...),
		} {
			together.Go(func() {
				defer GinkgoRecover()
				f.set(ctx, f.Admin(), tenant, list)
			})
		}
		together.Wait()
		f.ready(ctx, carols)
		Eventually(f.references(ctx, f.own("bob"))).WithContext(ctx).Should(ConsistOf(carols))
		Consistently(f.references(ctx, f.own("bob"))).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(ConsistOf(carols))
		allowed(ctx, f.sudo("bob", "carols"), podsIn(carols))
	})

	It("ACC-S22 when the Group leaves the sudoers, warren:sudo:payments keeps its rule on users while a ServiceAccount is listed, and "+
		"then loses it", func(ctx SpecContext) {
		f := of(world, "s22")
		f.settle(ctx, f.payments())
		payments, bob := f.own("payments"), build.Users(f.own("bob"))[0]
		rules := func() ([]rbacv1.PolicyRule, error) {
			role := &rbacv1.ClusterRole{}
			err := f.Admin().Get(ctx, client.ObjectKey{Name: "warren:sudo:" + payments}, role)
			return role.Rules, err
		}
		onNobody := ContainElement(HaveField("ResourceNames", ConsistOf("warren:sudo:"+payments)))
		f.set(ctx, f.Admin(), payments, sudoers(bob, build.ServiceAccount(f.own("ci"), "deployer")))
		f.ready(ctx, payments)
		Expect(rules()).To(onNobody)
		soonDenied(ctx, f.becoming("otto", "warren:sudo:"+payments, f.own("payments-sudoers")), podsIn(payments))
		f.set(ctx, f.Admin(), payments, sudoers(bob))
		f.ready(ctx, payments)
		Expect(rules()).NotTo(onNobody)
	})

	It("ACC-S25 the open watch of a sudoer who is removed continues, and his new request is denied", func(ctx SpecContext) {
		f := of(world, "s25")
		f.settle(ctx, f.payments())
		payments := f.own("payments")
		maps := listing(&corev1.ConfigMapList{}, "config maps", client.InNamespace(payments))
		allowed(ctx, f.sudo("bob", "payments"), maps)
		open, err := f.sudo("bob", "payments").Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(payments))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(open.Stop)

		f.set(ctx, f.as("mia"), payments, sudoers())
		soonDenied(ctx, f.sudo("bob", "payments"), maps)
		f.create(ctx, build.ConfigMap(payments, "made-later", ""))
		Eventually(open.ResultChan()).WithContext(ctx).Should(Receive(Satisfy(func(e watch.Event) bool {
			object, ok := e.Object.(*corev1.ConfigMap)
			return ok && object.Name == "made-later"
		})))
		denied(ctx, f.sudo("bob", "payments"), maps)
	})
})

// accessSubjects are the subjects of all bindings of a tenant.
func (f *fixture) accessSubjects(ctx context.Context, tenant string) []rbacv1.Subject {
	GinkgoHelper()
	var subjects []rbacv1.Subject
	of := client.MatchingLabels{v1alpha1.LabelTenant: tenant}
	everywhere, here := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	Expect(f.Admin().List(ctx, everywhere, of)).To(Succeed())
	Expect(f.Admin().List(ctx, here, of)).To(Succeed())
	for _, binding := range everywhere.Items {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, binding := range here.Items {
		subjects = append(subjects, binding.Subjects...)
	}
	return subjects
}
