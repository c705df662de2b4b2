package tenants_test

import (
	"context"
	"slices"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("an operator that is away", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	var w *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "n06", "n08", "n11", "d06", "s24")
	})

	// frozen calls do while the operator is suspended in the middle of its work, without noticing it.
	frozen := func(do func()) {
		GinkgoHelper()
		Expect(w.Operator.Process().Signal(syscall.SIGSTOP)).To(Succeed())
		defer func() { Expect(w.Operator.Process().Signal(syscall.SIGCONT)).To(Succeed()) }()
		do()
	}
	stopped := func(ctx context.Context, do func()) {
		GinkgoHelper()
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		do()
		Expect(w.Operator.Start(ctx)).To(Succeed())
	}

	It("ACC-N06 another user creates the Namespace before the operator's POST; that gives NamespaceConflict, and nothing is written to "+
		"the Namespace", func(ctx SpecContext) {
		f := of(w, "n06")
		payments := f.own("payments")
		namespace := build.Namespace(payments)
		frozen(func() {
			f.create(ctx, f.payments().Object(), namespace)
		})
		f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict)
		Consistently(func(g Gomega) {
			now := build.Namespace(payments)
			g.Expect(f.Read(now)(ctx)).To(Succeed())
			g.Expect(now.Labels).To(Equal(map[string]string{"kubernetes.io/metadata.name": payments}))
			g.Expect(now.Annotations).To(BeEmpty())
			g.Expect(f.granted(ctx)).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Succeed())
	})

	It("ACC-N08 another user creates the deleted Namespace before the operator does; that gives NamespaceConflict, and the sudo and edit "+
		"pairs are deleted", func(ctx SpecContext) {
		f := of(w, "n08")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		maker := f.own("namespace-maker")
		f.create(ctx, build.ClusterRole(maker, build.Rule("", "namespaces", "create")),
			build.ClusterRoleBinding(maker, maker, build.RBACUser(f.own("erin"))))
		allowed(ctx, f.as("erin"), making(build.Namespace(f.own("erins")), "Namespace"))
		namespace := build.Namespace(payments)
		frozen(func() {
			Expect(f.Admin().Delete(ctx, build.Namespace(payments))).To(Succeed())
			f.Gone(ctx, build.Namespace(payments))
			Expect(f.as("erin").Create(ctx, namespace)).To(Succeed())
		})
		f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict)
		f.Gone(ctx, pair("warren:sudo:"+payments)...)
		f.Gone(ctx, pair("warren:edit:"+payments)...)
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		soonDenied(ctx, f.as("mia"), readTenant(payments))
		denied(ctx, f.as("alice"), podsIn(payments))
		now := build.Namespace(payments)
		f.Exists(ctx, now)
		Expect(now.UID).To(Equal(namespace.UID))
		Expect(now.Annotations).To(BeEmpty())
	})

	It("ACC-N11 the operator is killed between the POST of the Namespace and the status; restarted, it keeps that Namespace, without "+
		"NamespaceConflict, and the LNamespace is Ready", func(ctx SpecContext) {
		f := of(w, "n11")
		payments := f.own("payments")
		// This stops the operator between the POST and the write of the status, for certain: it may not write the status.
		role := build.ClusterRole("warren-manager")
		f.Exists(ctx, role)
		rules := role.DeepCopy().Rules
		for i := range role.Rules {
			role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return r == "lnamespaces/status" })
		}
		Expect(f.Admin().Update(ctx, role)).To(Succeed())
		Eventually(f.operatorMay(ctx, "patch", v1alpha1.Domain, "lnamespaces", "status")).WithContext(ctx).Should(BeFalse())
		f.create(ctx, f.payments().Object())
		before := build.Namespace(payments)
		f.Exists(ctx, before)
		Expect(w.Operator.Kill()).To(Succeed())
		Expect(f.get(ctx, payments).Status.Conditions).To(BeEmpty())

		role.Rules = rules
		Expect(f.Admin().Update(ctx, role)).To(Succeed())
		Eventually(f.operatorMay(ctx, "patch", v1alpha1.Domain, "lnamespaces", "status")).WithContext(ctx).Should(BeTrue())
		mark := f.Mark(ctx)
		Expect(w.Operator.Start(ctx)).To(Succeed())
		f.ready(ctx, payments)
		now := build.Namespace(payments)
		f.Exists(ctx, now)
		Expect(now.UID).To(Equal(before.UID))
		Expect(f.Messages(build.Tenant(payments).Object(), v1alpha1.ReasonNamespaceConflict)(ctx)).To(BeEmpty())
		writes, err := f.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(writes).NotTo(ContainElement(Satisfy(func(r audit.Request) bool { return r.Resource == "namespaces" && r.Name == payments })))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
	})

	It("ACC-D06 an LNamespace that is deleted while the operator is stopped goes after the start, with its access objects; if its "+
		"finalizer was removed meanwhile, its Namespace stays Active", func(ctx SpecContext) {
		f := of(w, "d06")
		payments, shop := f.own("payments"), f.own("shop")
		f.settle(ctx, f.payments(), f.shop())
		stopped(ctx, func() {
			Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
			Expect(f.Admin().Delete(ctx, build.Tenant(shop).Object())).To(Succeed())
			f.LetGo(ctx, build.Tenant(shop).Object())
			f.Gone(ctx, build.Tenant(shop).Object())
		})
		f.Gone(ctx, build.Tenant(payments).Object(), build.Namespace(payments))
		Eventually(func() []client.Object { return f.granted(ctx) }).WithContext(ctx).Should(BeEmpty())
		Consistently(func(g Gomega) {
			namespace := build.Namespace(shop)
			g.Expect(f.Read(namespace)(ctx)).To(Succeed())
			g.Expect(namespace.Status.Phase).To(Equal(corev1.NamespaceActive))
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Succeed())
		soonDenied(ctx, f.sudo("bob", "shop"), podsIn(shop))
	})

	It("ACC-S24 while the operator is down, a Group replaces all users; soon after its start they are denied in the whole tree, the "+
		"Group is allowed, and sudo works throughout", func(ctx SpecContext) {
		f := of(w, "s24")
		payments, web := f.own("payments"), f.own("pay-web")
		f.settle(ctx, f.payments())
		f.grow(ctx, payments, web)
		allowed(ctx, f.as("alice"), podsIn(payments), podsIn(web))
		allowed(ctx, f.as("devi"), podsIn(payments), podsIn(web))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments), podsIn(web))
		here, there := throughout(ctx, f.sudo("bob", "payments"), podsIn(payments)), throughout(ctx, f.sudo("bob", "payments"), podsIn(web))
		stopped(ctx, func() {
			f.set(ctx, f.Admin(), payments, map[string]any{"users": []v1alpha1.Subject{build.Group(f.own("ops"))}})
			allowed(ctx, f.as("alice"), podsIn(payments))
			denied(ctx, f.as("olga"), podsIn(payments))
		})
		for _, namespace := range []string{payments, web} {
			soonDenied(ctx, f.as("alice"), podsIn(namespace))
			soonDenied(ctx, f.as("devi"), podsIn(namespace))
			allowed(ctx, f.as("olga"), podsIn(namespace))
		}
		Expect(here()).To(Succeed())
		Expect(there()).To(Succeed())
	})
})

// operatorMay asks the authorizer whether the operator may do that.
func (f *fixture) operatorMay(ctx context.Context, verb, group, resource, subresource string) func() (bool, error) {
	return func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               controlplane.Operator,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource},
		}}
		err := f.Admin().Create(ctx, review)
		return review.Status.Allowed, err
	}
}
