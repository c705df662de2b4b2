package tenants_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a tenant that is deleted", func() {
	It("ACC-D02 after LNamespace shop is deleted, bob's sudo of it is denied, his sudo of payments works throughout, and his self pair "+
		"has one reference; ACC-D03 with payments deleted too, no access object is left, and bob may not impersonate "+
		"himself", func(ctx SpecContext) {
		f := of(world, "d02")
		payments, shop, bob := f.own("payments"), f.own("shop"), f.own("bob")
		f.settle(ctx, f.payments(), f.shop())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		allowed(ctx, f.sudo("bob", "shop"), podsIn(shop))

		stop := throughout(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Expect(f.Admin().Delete(ctx, build.Tenant(shop).Object())).To(Succeed())
		soonDenied(ctx, f.sudo("bob", "shop"), podsIn(shop))
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(payments))
		f.Gone(ctx, build.Tenant(shop).Object(), build.Namespace(shop))
		Expect(stop()).To(Succeed(), "sudo of payments throughout")

		Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
		f.Gone(ctx, build.Tenant(payments).Object(), build.Namespace(payments))
		Eventually(func() []client.Object { return f.granted(ctx) }).WithContext(ctx).Should(BeEmpty())
		soonDenied(ctx, f.becoming("bob", bob), podsIn(payments))
	})

	It("ACC-D04 with cascade orphan or foreground, a deleted tenant leaves no sudo or edit pair, no self pair of its own, and no "+
		"reference in another's; sudo of payments works throughout", func(ctx SpecContext) {
		f := of(world, "d04")
		payments, bob := f.own("payments"), f.own("bob")
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		stop := throughout(ctx, f.sudo("bob", "payments"), podsIn(payments))
		for cascade, tenant := range map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationOrphan: "left", metav1.DeletePropagationForeground: "shop",
		} {
			name := f.own(tenant)
			f.settle(ctx, build.Tenant(name).Users(f.own("dave")).Managers(f.own("mia")).Sudoers(bob, f.own("eve")))
			allowed(ctx, f.sudo("bob", tenant), podsIn(name))
			Expect(f.Admin().Delete(ctx, build.Tenant(name).Object(), client.PropagationPolicy(cascade))).To(Succeed())
			soonDenied(ctx, f.sudo("bob", tenant), podsIn(name))
			f.Gone(ctx, build.Tenant(name).Object(), build.Namespace(name))
			f.Gone(ctx, pair("warren:sudo:"+name)...)
			f.Gone(ctx, pair("warren:edit:"+name)...)
			f.Gone(ctx, pair("warren:self:"+f.own("eve"))...)
			Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(payments), "after %s", cascade)
		}
		Expect(stop()).To(Succeed(), "sudo of payments throughout")
	})

	It("ACC-D01 without webhooks, deleting a tenant with sub-namespaces gives ChildrenExist, and access stays; a manager may set "+
		"allowCascadingDeletion, and the tree is deleted", func(ctx SpecContext) {
		f := of(world, "d01")
		payments, web := f.own("payments"), f.own("pay-web")
		f.settle(ctx, f.payments())
		f.grow(ctx, payments, web)
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments), podsIn(web))
		bob, alice := throughout(ctx, f.sudo("bob", "payments"), podsIn(web)), throughout(ctx, f.as("alice"), podsIn(payments))
		Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
		lns := f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonChildrenExist)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady).Message).To(ContainSubstring(web))
		Consistently(func(g Gomega) {
			g.Expect(f.Read(build.Namespace(web))(ctx)).To(Succeed())
			g.Expect(f.get(ctx, payments).Status.Sudo).NotTo(BeNil())
		}).WithContext(ctx).WithTimeout(test.Quiet(2 * time.Second)).Should(Succeed())
		Expect(bob()).To(Succeed())
		Expect(alice()).To(Succeed())

		f.set(ctx, f.as("mia"), payments, map[string]any{"allowCascadingDeletion": true})
		f.Gone(ctx, build.Namespace(web), build.Namespace(payments), build.Tenant(payments).Object())
		f.Gone(ctx, pair("warren:sudo:"+payments)...)
	}, SpecTimeout(8*time.Minute))

	It("ACC-D05 a finalizer holds content of a deleted tenant; sudo and edit pairs go soon, Terminating has the Namespace's message, and "+
		"all is deleted after the finalizer", func(ctx SpecContext) {
		f := of(world, "d05")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		held := build.Held(build.ConfigMap(payments, "held", ""))
		f.create(ctx, held)
		Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
		f.Gone(ctx, pair("warren:sudo:"+payments)...)
		f.Gone(ctx, pair("warren:edit:"+payments)...)
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Eventually(func() string {
			c := v1alpha1.FindCondition(f.get(ctx, payments).Status.Conditions, v1alpha1.ConditionNamespaceReady)
			return c.Reason + ": " + c.Message
		}).WithContext(ctx).Should(SatisfyAll(HavePrefix("Terminating: "), ContainSubstring("example.com/hold")))
		f.LetGo(ctx, held)
		f.Gone(ctx, build.Tenant(payments).Object(), build.Namespace(payments))
	}, SpecTimeout(8*time.Minute))
})

var _ = Describe("a name that is taken again", func() {
	It("ACC-X02 without webhooks, an LNamespace created anew while its old Namespace ends is Terminating without rights; then only eve, "+
		"of its lists, has rights in the new Namespace", func(ctx SpecContext) {
		f := of(world, "x02")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		old, held := build.Namespace(payments), build.Held(build.ConfigMap(payments, "held", ""))
		f.create(ctx, held)
		f.Exists(ctx, old)
		Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
		f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonTerminating)
		f.LetGo(ctx, build.Tenant(payments).Object())
		f.Gone(ctx, build.Tenant(payments).Object())

		eve := f.own("eve")
		f.create(ctx, build.Tenant(payments).Users(eve).Managers(eve).Sudoers(eve).Object())
		f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonTerminating)
		denied(ctx, f.sudo("eve", "payments"), podsIn(payments))
		f.LetGo(ctx, held)
		f.ready(ctx, payments)
		now := build.Namespace(payments)
		f.Exists(ctx, now)
		Expect(now.UID).NotTo(Equal(old.UID))
		allowed(ctx, f.sudo("eve", "payments"), podsIn(payments))
		allowed(ctx, f.as("eve"), podsIn(payments), readTenant(payments))
		for _, person := range []string{"alice", "mia", "bob"} {
			denied(ctx, f.as(person), podsIn(payments), readTenant(payments))
			denied(ctx, f.sudo(person, "payments"), podsIn(payments))
		}
	}, SpecTimeout(8*time.Minute))
})
