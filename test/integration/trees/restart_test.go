package trees_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// restarted is a cluster whose operator is stopped and started.
type restarted struct{ cluster }

func (c *restarted) begin(ctx SpecContext) {
	GinkgoHelper()
	c.cluster = startWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: fixture}})
}

func (c *restarted) stop() {
	GinkgoHelper()
	code, err := c.Operator.Stop()
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(BeZero())
}

func (c *restarted) start(ctx context.Context) {
	GinkgoHelper()
	Expect(c.Operator.Start(ctx)).To(Succeed())
}

var _ = Describe("the operator is away while something happens", Ordered, ContinueOnFailure, func() {
	var own restarted
	BeforeAll(func(ctx SpecContext) { own.begin(ctx) })

	It("SUB-S11 a SubNamespace that the operator has not seen has status observedGeneration -1, and kubectl wait for Ready times out; once "+
		"the operator runs, it is Ready", func(ctx SpecContext) {
		own.Create(ctx, build.Root("s11-payments"))
		own.stop()
		own.Create(ctx, build.SubNamespace("s11-payments", "s11-web"))
		_, problems, code := own.Kubectl(ctx, controlplane.Admin, "wait", "--for=condition=Ready", "--timeout=3s",
			"-n", "s11-payments", "subnamespace/s11-web")
		Expect(code).To(Equal(1))
		Expect(problems).To(ContainSubstring("timed out"))
		Expect(own.sub("s11-payments/s11-web")(ctx)).To(HaveField("Status", v1alpha1.SubNamespaceStatus{ObservedGeneration: -1}))
		own.start(ctx)
		Eventually(own.sub("s11-payments/s11-web")).WithContext(ctx).Should(beReady())
	})

	It("SUB-D13 if a SubNamespace is deleted and its Namespace moved while the operator is down, the SubNamespace goes, and the Namespace "+
		"stays below the other root; SUB-K4 if a bound Namespace lost its SubNamespace, whose finalizer was removed by hand, it keeps its UID "+
		"when the SubNamespace is created again", func(ctx SpecContext) {
		own.Create(ctx, build.Root("d13-payments"), build.Root("d13-other"), build.Root("k4-payments"))
		own.grow(ctx, "d13-payments/d13-web", "k4-payments/k4-web")
		before := own.now(ctx, "k4-web")
		moved, lost := subNamespace("d13-payments/d13-web"), subNamespace("k4-payments/k4-web")
		own.stop()
		own.Delete(ctx, moved, lost)
		own.label(ctx, "d13-web", v1alpha1.LabelParent+"=d13-other")
		own.LetGo(ctx, lost)
		own.Gone(ctx, lost)
		own.start(ctx)
		own.Gone(ctx, moved)
		Eventually(own.ns("d13-web")).WithContext(ctx).Should(And(active(), standing("d13-other", "1")))
		own.grow(ctx, "k4-payments/k4-web")
		Expect(own.now(ctx, "k4-web")).To(HaveField("ObjectMeta.UID", before.UID))
		Consistently(own.ns("d13-web")).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).Should(active())
	})

	It("SUB-D7 when 20 such roots are deleted, 10 of them while the operator is down, c1 and c2 are always deleted; a new root of that name "+
		"has cascading off", func(ctx SpecContext) {
		groves := make([]grove, 20)
		atOnce(len(groves), func(i int) { groves[i] = plant(ctx, own.cluster, fmt.Sprintf("d7-%d", i)) })
		cut := func(some []grove) {
			GinkgoHelper()
			atOnce(len(some), func(i int) { own.Delete(ctx, build.Namespace(some[i].root), some[i].tenant) })
		}
		cut(groves[:10])
		own.stop()
		cut(groves[10:])
		// The namespace controller empties a root some 5 s later: only then does a SubNamespace wait for the operator.
		for _, g := range groves[10:] {
			Eventually(own.sub(g.root + "/" + g.c1)).WithContext(ctx).Should(HaveField("ObjectMeta.DeletionTimestamp", Not(BeNil())))
		}
		Consistently(own.ns(groves[10].c1)).WithContext(ctx).WithTimeout(test.Quiet(3 * time.Second)).Should(active())
		own.start(ctx)
		for _, g := range groves {
			g.expectCascade(ctx, own.cluster)
		}
		for _, g := range groves {
			Expect(own.now(ctx, g.f)).To(active())
			Expect(own.now(ctx, g.g)).To(active())
			// Namespaces wait for a parent of that name, so a cluster admin must give it to the tenant.
			tenant := build.Tenant(g.root).Object()
			own.Create(ctx, tenant)
			own.Create(ctx, build.Annotated(build.Namespace(g.root), v1alpha1.AnnotationAdopt, string(tenant.UID)))
			Eventually(own.ns(g.root)).WithContext(ctx).Should(unnoted(v1alpha1.AnnotationCascading))
		}
	})

	It("SUB-D14 a Namespace that is replaced between the operator's read and its delete is not deleted", func(ctx SpecContext) {
		own.stop()
		namespaceReplaced(ctx, own.cluster)
		own.start(ctx)
	})
})

var _ = Describe("the operator starts anew", Ordered, ContinueOnFailure, func() {
	var own restarted
	BeforeAll(func(ctx SpecContext) { own.begin(ctx) })

	It("SUB-I7 an operator that restarts with 300 settled children writes no Namespace and no SubNamespace", func(ctx SpecContext) {
		own.Create(ctx, build.Root("i7-payments", "team", "neco"))
		const children = 300
		atOnce(10, func(i int) {
			for j := range children / 10 {
				own.Create(ctx, build.SubNamespace("i7-payments", fmt.Sprintf("i7-%d-%d", i, j)))
			}
		})
		Eventually(func(g Gomega) {
			subs := &v1alpha1.SubNamespaceList{}
			g.Expect(own.Admin().List(ctx, subs, client.InNamespace("i7-payments"))).To(Succeed())
			ready := 0
			for i := range subs.Items {
				if ok, _ := beReady().Match(&subs.Items[i]); ok {
					ready++
				}
			}
			g.Expect(ready).To(Equal(children))
		}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(500 * time.Millisecond).Should(Succeed())
		written := func(since audit.Position) func(context.Context) ([]string, error) {
			return own.writesThat(since, func(r audit.Request) bool { return r.Resource == "namespaces" || r.Resource == "subnamespaces" })
		}
		own.stop()
		since := own.Mark(ctx)
		own.start(ctx)
		Consistently(written(since)).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).WithPolling(500 * time.Millisecond).
			Should(BeEmpty())
		own.grow(ctx, "i7-payments/i7-last") // when it is ready, the operator has handled its whole queue
		Eventually(written(since)).WithContext(ctx).ShouldNot(BeEmpty(), "what it writes for the new namespace")
		Expect(written(since)(ctx)).To(HaveEach(ContainSubstring("i7-last ")))
	})

	It("SUB-L3 without webhooks, 30 SubNamespaces created at once with room for 10 never have more Namespaces, though the operator is "+
		"killed once; then 10 are Ready, 20 LimitExceeded; SUB-L4 when two of these Ready ones are deleted, the two oldest that wait get "+
		"Namespaces; a limit that is lowered to 5 deletes nothing", func(ctx SpecContext) {
		limitHolds(ctx, own.cluster)
	})

	It("SUB-D12 when the CRD is deleted with 5 SubNamespaces, their Namespaces stay Active and bound; when both are created again, they are "+
		"Ready, with the same UIDs", func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "subnamespaces." + v1alpha1.Domain}}
		own.Create(ctx, build.Root("d12-payments"))
		uids := map[string]any{}
		for i := range 5 {
			name := fmt.Sprintf("d12-%d", i)
			own.grow(ctx, "d12-payments/"+name)
			uids[name] = own.now(ctx, name).UID
		}
		own.Delete(ctx, crd)
		own.Gone(ctx, crd)
		for name := range uids {
			Consistently(own.ns(name)).WithContext(ctx).WithTimeout(test.Quiet(time.Second)).
				Should(And(active(), carry(v1alpha1.LabelBound, "true")))
		}
		manifests, err := devcluster.Render("config/crd")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, own.Config(controlplane.Admin), manifests.Definitions())).To(Succeed())
		for name, uid := range uids {
			Eventually(func() error { return own.Admin().Create(ctx, build.SubNamespace("d12-payments", name)) }).WithContext(ctx).Should(Succeed())
			// The operator's watch looks for the kind again with a back-off of its own.
			Eventually(own.sub("d12-payments/" + name)).WithContext(ctx).WithTimeout(2 * time.Minute).Should(beReady())
			Expect(own.now(ctx, name)).To(HaveField("ObjectMeta.UID", uid))
		}
	})
})
