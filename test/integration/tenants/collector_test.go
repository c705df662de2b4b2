package tenants_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

var _ = Describe("a garbage collector that is away", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	var w *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "s21", "r13")
	})

	It("ACC-S21 with kube-controller-manager stopped, removed bob's sudo is denied, and both references of the self pair are marked for "+
		"deletion; with it started, the pair is deleted", func(ctx SpecContext) {
		f := of(w, "s21")
		payments, shop, bob := f.own("payments"), f.own("shop"), f.own("bob")
		f.settle(ctx, f.payments(), f.shop())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		allowed(ctx, f.sudo("bob", "shop"), podsIn(shop))
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(payments, shop))
		Expect(w.ControlPlane.Controllers.Stop()).To(Succeed())

		for _, tenant := range []string{payments, shop} {
			f.set(ctx, f.as("mia"), tenant, sudoers())
		}
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		soonDenied(ctx, f.sudo("bob", "shop"), podsIn(shop))
		marked := ConsistOf("mark:"+payments, "mark:"+shop)
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(marked)
		Consistently(f.references(ctx, bob)).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(marked)

		Expect(w.ControlPlane.Controllers.Start()).To(Succeed())
		Expect(w.ControlPlane.Ready(ctx)).To(Succeed())
		for _, object := range pair("warren:self:" + bob) {
			Eventually(f.Read(object)).WithContext(ctx).Should(beNotFound())
		}
	})

	It("ACC-R13 LNamespaces and roots come back with new UIDs; garbage collector and operator restore the access objects, and these "+
		"stay", func(ctx SpecContext) {
		f := of(w, "r13")
		f.settle(ctx, f.payments(), f.shop())
		f.grow(ctx, f.own("payments"), f.own("pay-web"))
		kept := build.Secret(f.own("pay-web"), "kept", "v")
		f.create(ctx, kept)
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(w.ControlPlane.Controllers.Stop()).To(Succeed())
		for _, tenant := range []*build.LNamespace{f.payments(), f.shop()} {
			old := f.get(ctx, tenant.Name)
			f.LetGo(ctx, old.DeepCopy())
			Expect(f.Admin().Delete(ctx, old)).To(Succeed())
			f.create(ctx, tenant.Object())
			Expect(f.get(ctx, tenant.Name).UID).NotTo(Equal(old.UID))
			namespace := build.Namespace(tenant.Name)
			f.Exists(ctx, namespace)
			Expect(f.Admin().Update(ctx, build.Annotated(namespace, v1alpha1.AnnotationAdopt, string(f.get(ctx, tenant.Name).UID)))).To(Succeed())
		}
		Expect(w.ControlPlane.Controllers.Start()).To(Succeed())
		Expect(w.Operator.Start(ctx)).To(Succeed())
		Expect(w.ControlPlane.Ready(ctx)).To(Succeed())

		granted := func() map[string]client.Object { return plain(f.granted(ctx)) }
		want := f.everything(ctx)
		Eventually(granted).WithContext(ctx).Should(BeComparableTo(want))
		Consistently(granted).WithContext(ctx).WithTimeout(test.Quiet(suite.Patience)).Should(BeComparableTo(want))
		f.ready(ctx, f.own("payments"))
		f.ready(ctx, f.own("shop"))
		allowed(ctx, f.sudo("bob", "payments"), reading(kept, "the Secret"))
	})
})
