package trees_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a SubNamespace is deleted", func() {
	It("SUB-D1 when a SubNamespace is deleted, its Namespace "+
		"without children is deleted; no other namespace is changed", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("d1-payments"))
		shared.grow(ctx, "d1-payments/d1-web", "d1-web/d1-leaf", "d1-payments/d1-other")
		since := shared.Mark(ctx)
		leaf := subNamespace("d1-web/d1-leaf")
		shared.Delete(ctx, leaf)
		shared.Gone(ctx, leaf, build.Namespace("d1-leaf"))
		Expect(shared.namespaceWrites(since, "d1-leaf")(ctx)).To(HaveExactElements(HavePrefix("delete namespaces d1-leaf/d1-leaf ")))
		Expect(shared.namespaceWrites(since, "d1-payments", "d1-web", "d1-other")(ctx)).To(BeEmpty())
		for _, name := range []string{"d1-payments", "d1-web", "d1-other"} {
			Expect(shared.now(ctx, name)).To(active())
		}
	})

	It("SUB-D2 a SubNamespace is deleted though its Namespace hangs in Terminating; with cascading deletion, so is the root when its "+
		"LNamespace is deleted", func(ctx SpecContext) {
		tenant := build.Tenant("d2-payments").Cascading().Object()
		shared.Create(ctx, tenant)
		Eventually(shared.ns("d2-payments")).WithContext(ctx).Should(noted(v1alpha1.AnnotationCascading, "true"))
		shared.grow(ctx, "d2-payments/d2-web")
		content := build.Held(build.ConfigMap("d2-web", "hangs", "x"))
		shared.Create(ctx, content)
		sub := subNamespace("d2-payments/d2-web")
		shared.Delete(ctx, sub)
		shared.Gone(ctx, sub)
		Expect(shared.now(ctx, "d2-web")).To(terminating())
		shared.Delete(ctx, tenant)
		shared.Gone(ctx, build.Namespace("d2-payments"))
		Expect(shared.now(ctx, "d2-web")).To(terminating())
		shared.LetGo(ctx, content)
	})

	It("SUB-D5 without webhooks, a SubNamespace whose Namespace has children is deleted with Event DeletionRefused; all three Namespaces "+
		"stay Active", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("d5-payments"))
		shared.grow(ctx, "d5-payments/d5-web", "d5-web/d5-deep1", "d5-web/d5-deep2")
		sub := subNamespace("d5-payments/d5-web")
		shared.Delete(ctx, sub)
		shared.Gone(ctx, sub)
		Eventually(ctx, shared.Reasons(subNamespace("d5-payments/d5-web"))).Should(ContainElement(string(v1alpha1.ReasonDeletionRefused)))
		for _, name := range []string{"d5-web", "d5-deep1", "d5-deep2"} {
			Consistently(shared.ns(name)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).Should(active())
		}
	})
})

var _ = Describe("a Namespace is deleted", func() {
	It("SUB-D6 if a root that allows cascading deletion is deleted, bound c1 and c2 are deleted; unbound f and g below it stay Active and "+
		"halted, with copies and labels", func(ctx SpecContext) {
		g := plant(ctx, shared, "d6")
		shared.Delete(ctx, g.tenant)
		g.expectCascade(ctx, shared)
		for _, name := range []string{g.f, g.g} {
			Expect(shared.now(ctx, name)).To(And(active(), carry("team", "neco")))
			Expect(shared.Read(build.Secret(name, "key", "x"))(ctx)).To(Succeed())
		}
		Eventually(shared.sub(g.f + "/" + g.g)).WithContext(ctx).Should(And(
			stall(v1alpha1.ReasonParentNotManaged, "halted", string(v1alpha1.ReasonParentMissing)),
			say(v1alpha1.ConditionMetadataSynced, metav1.ConditionUnknown, v1alpha1.ReasonHalted)))
		shared.quiet(ctx, 10*time.Second, g.f, g.g)
	})

	It("SUB-D8 without webhooks and cascading deletion, a root is deleted, "+
		"and its bound child stays Active and halted, with its labels", func(ctx SpecContext) {
		root := build.Root("d8-payments", "team", "neco")
		shared.Create(ctx, root)
		shared.grow(ctx, "d8-payments/d8-c")
		shared.Delete(ctx, root)
		shared.Gone(ctx, root)
		shared.quiet(ctx, 10*time.Second, "d8-c")
		Expect(shared.now(ctx, "d8-c")).To(And(active(), carry("team", "neco"), standing("d8-payments", "1")))
		shared.Create(ctx, build.SubNamespace("d8-c", "d8-below"))
		Eventually(shared.sub("d8-c/d8-below")).WithContext(ctx).
			Should(stall(v1alpha1.ReasonParentNotManaged, "halted", string(v1alpha1.ReasonParentMissing)))
	})

	It("SUB-D11 without webhooks, a bound Namespace that is deleted beside its SubNamespace is created again, with another UID and the same "+
		"labels; Event NamespaceRecreated", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("d11-payments", "team", "neco"), build.SubNamespace("d11-payments", "d11-web", "app", "web"))
		Eventually(shared.sub("d11-payments/d11-web")).WithContext(ctx).Should(beReady())
		old := shared.now(ctx, "d11-web")
		shared.Delete(ctx, build.Namespace("d11-web"))
		Eventually(shared.ns("d11-web")).WithContext(ctx).Should(And(
			HaveField("ObjectMeta.UID", Not(Equal(old.UID))), HaveField("ObjectMeta.Labels", Equal(old.Labels))))
		Eventually(shared.sub("d11-payments/d11-web")).WithContext(ctx).Should(beReady())
		Eventually(ctx, shared.Reasons(subNamespace("d11-payments/d11-web"))).Should(ContainElement(string(v1alpha1.ReasonNamespaceRecreated)))
	})
})
