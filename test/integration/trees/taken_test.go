package trees_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// free deletes a namespace of strangers and waits until its name is free.
func (c cluster) free(ctx context.Context, name string) {
	GinkgoHelper()
	c.Delete(ctx, build.Namespace(name))
	c.Gone(ctx, build.Namespace(name))
}

var _ = Describe("a name that belongs to strangers", func() {
	It("SUB-K6 a SubNamespace with the name of a stranger's namespace is NameTaken; it stays so after that is deleted, also after a "+
		"restart, until its spec changes meanwhile; SUB-K6 a SubNamespace of another root that asks for that name while the stranger's "+
		"namespace terminates is NameTaken, and stays so", func(ctx SpecContext) {
		c := startWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: fixture}})
		const wanted = "k6-payments/k6-argocd"
		c.Create(ctx, build.Root("k6-payments"), build.Root("k6-shop"), build.Namespace("k6-argocd"),
			build.SubNamespace("k6-payments", "k6-argocd"))
		Eventually(c.sub(wanted)).WithContext(ctx).Should(stall(v1alpha1.ReasonNameTaken,
			"the operator tries again only when this SubNamespace is created again or its spec changes"))
		c.free(ctx, "k6-argocd")
		c.StaysAbsent(ctx, 5*time.Second, build.Namespace("k6-argocd"))
		// Not after a restart, either.
		_, err := c.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		_, err = c.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		c.grow(ctx, "k6-payments/k6-proof") // the operator is at work
		c.Absent(ctx, build.Namespace("k6-argocd"))
		Expect(c.sub(wanted)(ctx)).To(stall(v1alpha1.ReasonNameTaken))
		// The strangers make the namespace again. The name is taken, even while it terminates.
		again, held := build.Namespace("k6-argocd"), build.Held(build.ConfigMap("k6-argocd", "hangs", "x"))
		c.Create(ctx, again, held)
		late := build.SubNamespace("k6-shop", "k6-argocd")
		c.Delete(ctx, build.Namespace("k6-argocd"))
		c.Create(ctx, late)
		Eventually(c.sub("k6-shop/k6-argocd")).WithContext(ctx).Should(stall(v1alpha1.ReasonNameTaken))
		c.LetGo(ctx, held)
		c.Gone(ctx, again)
		c.StaysAbsent(ctx, 3*time.Second, build.Namespace("k6-argocd"))
		// A SubNamespace that is changed while the name is free gets it.
		edit(ctx, c, subNamespace(wanted), func(sub *v1alpha1.SubNamespace) {
			sub.Spec.Labels = map[string]v1alpha1.LabelValue{"app": "argocd"}
		})
		Eventually(c.sub(wanted)).WithContext(ctx).Should(beReady())
		Expect(c.sub("k6-shop/k6-argocd")(ctx)).To(stall(v1alpha1.ReasonNameTaken))
	})

	It("SEC-W35 a SubNamespace whose name another tenant or a plain namespace has reports the same for both: `outside of this tree`, "+
		"without that tenant", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("w35-payments"), build.Root("w35-shop"), build.Namespace("w35-plain"))
		shared.grow(ctx, "w35-shop/w35-till")
		var said []string
		for _, name := range []string{"w35-till", "w35-plain"} {
			shared.Create(ctx, build.SubNamespace("w35-payments", name))
			Eventually(shared.sub("w35-payments/" + name)).WithContext(ctx).Should(stall(v1alpha1.ReasonNameTaken, "exists outside of this tree"))
			sub, err := shared.sub("w35-payments/" + name)(ctx)
			Expect(err).NotTo(HaveOccurred())
			ready := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
			said = append(said, strings.ReplaceAll(ready.Message, name, "NAME"))
		}
		Expect(said[0]).To(Equal(said[1]))
		Expect(said[0]).NotTo(ContainSubstring("w35-shop"))
	})

	It("HIER-S9 a required child whose name a namespace of no tree has is a ChildConflict; it stays so without that namespace, "+
		"until its SubNamespace is deleted and it is listed again", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s9-x"), build.Namespace("s9-taken"))
		shared.wish(ctx, "s9-x", build.Requiring("s9-taken", "s9-mine"))
		Eventually(shared.hier("s9-x")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonChildConflict,
			"namespace s9-taken exists outside of this tree"))
		Eventually(shared.sub("s9-x/s9-mine")).WithContext(ctx).Should(beReady())
		shared.free(ctx, "s9-taken")
		Eventually(shared.hier("s9-x")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonChildConflict,
			"s9-taken belonged to a namespace outside of this tree"))
		shared.StaysAbsent(ctx, 5*time.Second, build.Namespace("s9-taken"))
		shared.wish(ctx, "s9-x", build.Requiring("s9-mine"))
		Eventually(shared.hier("s9-x")).WithContext(ctx).Should(settled())
		shared.Delete(ctx, subNamespace("s9-x/s9-taken"))
		shared.Gone(ctx, subNamespace("s9-x/s9-taken"))
		shared.wish(ctx, "s9-x", build.Requiring("s9-taken", "s9-mine"))
		Eventually(shared.hier("s9-x")).WithContext(ctx).Should(And(settled(), say(children, metav1.ConditionTrue, v1alpha1.ReasonAllPresent)))
	})

	It("HIER-T6 the operator creates a HierarchyConfiguration in a root with an unbound child, but none in a plain namespace "+
		"that a child names", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("t6-plain"), build.Child("t6-x", "t6-plain"))
		shared.Create(ctx, build.Root("t6-root"), build.Child("t6-y", "t6-root"))
		Eventually(shared.Read(build.Hierarchy("t6-root"))).WithContext(ctx).Should(Succeed(),
			"the operator makes one for a root with an unbound child")
		shared.Absent(ctx, build.Hierarchy("t6-plain"))
		Expect(shared.Operator.Log()).NotTo(ContainSubstring("making a HierarchyConfiguration in namespace t6-plain"))
	})

	It("SUB-K7 without webhooks, a SubNamespace with a reserved name is ReservedName and Stalled, without a Namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("k7-payments"), build.SubNamespace("k7-payments", "k7-istio-system"))
		Eventually(shared.sub("k7-payments/k7-istio-system")).WithContext(ctx).
			Should(stall(v1alpha1.ReasonReservedName, "the configuration reserves the name k7-istio-system"))
		shared.quiet(ctx, 3*time.Second, "k7-istio-system")
		shared.Absent(ctx, build.Namespace("k7-istio-system"))
	})

	It("HIER-O9 with webhooks off, LNamespace p of a user is NamespaceConflict while x waits for p; it adopts a Namespace p that "+
		"a cluster admin creates with its UID as mark", func(ctx SpecContext) {
		p, mallory := build.Root("o9-p"), build.Tenant("o9-p").Users("mallory").Object()
		shared.Create(ctx, p, build.Child("o9-x", "o9-p"))
		Eventually(shared.ns("o9-x")).WithContext(ctx).Should(standing("o9-p", "1"))
		shared.free(ctx, "o9-p")
		shared.Create(ctx, mallory)
		Eventually(shared.tenant("o9-p")).WithContext(ctx).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", string(v1alpha1.ConditionNamespaceReady)), HaveField("Reason", string(v1alpha1.ReasonNamespaceConflict)),
			HaveField("Message", ContainSubstring(`other namespaces wait for a parent named "o9-p"`))))))
		shared.StaysAbsent(ctx, 5*time.Second, build.Namespace("o9-p"))
		shared.Absent(ctx, build.RoleBinding("o9-x", "warren:users", "admin"))
		// A cluster admin lets this LNamespace adopt the namespace.
		shared.Create(ctx, build.Annotated(build.Namespace("o9-p"), v1alpha1.AnnotationAdopt, string(mallory.UID)))
		Eventually(shared.ns("o9-p")).WithContext(ctx).Should(noted(v1alpha1.AnnotationLNamespaceUID, string(mallory.UID)))
		shared.Exists(ctx, build.RoleBinding("o9-x", "warren:users", "admin"))
	})
})

// tenant reads an LNamespace.
func (c cluster) tenant(name string) func(context.Context) (*v1alpha1.LNamespace, error) {
	return func(ctx context.Context) (*v1alpha1.LNamespace, error) {
		read := build.Tenant(name).Object()
		return read, c.Admin().Get(ctx, client.ObjectKeyFromObject(read), read)
	}
}
