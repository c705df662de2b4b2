package trees_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

const children = v1alpha1.ConditionChildrenReady

var _ = Describe("a HierarchyConfiguration requires children", func() {
	It("HIER-S6 a required child whose name another namespace of the tree has is a ChildConflict, and is created once the name "+
		"is free; other children are created; HIER-S7 neither a name removed from requiredChildren, nor the deletion of HC(x), "+
		"deletes a SubNamespace or its namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s6-org"), build.Child("s6-x", "s6-org"), build.Child("s6-side", "s6-org"), build.Child("s6-c1", "s6-side"),
			build.Secret("s6-x", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		shared.wish(ctx, "s6-x", build.Requiring("s6-c1", "s6-c2"))
		Eventually(shared.hier("s6-x")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonChildConflict,
			"namespace s6-c1 exists and is the child of another namespace of this tree"))
		Eventually(shared.sub("s6-x/s6-c2")).WithContext(ctx).Should(And(beReady(),
			HaveField("ObjectMeta.Labels", HaveKeyWithValue("app.kubernetes.io/managed-by", v1alpha1.OperatorName)),
			HaveField("ObjectMeta.OwnerReferences", BeEmpty())))
		shared.Exists(ctx, build.Secret("s6-c2", "key", ""))
		Eventually(ctx, shared.Reasons(build.Hierarchy("s6-x"))).Should(ContainElements("ChildConflict", "ChildRequested"))
		shared.Delete(ctx, build.Namespace("s6-c1"))
		Eventually(shared.sub("s6-x/s6-c1")).WithContext(ctx).Should(beReady())
		Eventually(shared.hier("s6-x")).WithContext(ctx).Should(And(settled(), say(children, metav1.ConditionTrue, v1alpha1.ReasonAllPresent)))

		shared.wish(ctx, "s6-x", build.Requiring("s6-c2"))
		Eventually(shared.hier("s6-x")).WithContext(ctx).Should(settled())
		shared.Delete(ctx, build.Hierarchy("s6-x"))
		shared.quiet(ctx, 5*time.Second, "s6-x", "s6-c1", "s6-c2")
		for _, name := range []string{"s6-c1", "s6-c2"} {
			Expect(shared.sub("s6-x/" + name)(ctx)).To(beReady())
			Expect(shared.now(ctx, name)).To(active())
		}
	})

	It("HIER-S8 with webhooks off, the SubNamespace of a required child can be deleted; once its Namespace is gone, the operator "+
		"creates both again", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s8-x"))
		shared.wish(ctx, "s8-x", build.Requiring("s8-c1"))
		Eventually(shared.sub("s8-x/s8-c1")).WithContext(ctx).Should(beReady())
		was := shared.now(ctx, "s8-c1")
		content := build.Held(build.ConfigMap("s8-c1", "hangs", "x"))
		shared.Create(ctx, content)
		shared.Delete(ctx, subNamespace("s8-x/s8-c1"))
		Eventually(shared.hier("s8-x")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonChildPending,
			"namespace s8-c1 is being terminated"))
		shared.Gone(ctx, subNamespace("s8-x/s8-c1"))
		shared.LetGo(ctx, content)
		Eventually(shared.sub("s8-x/s8-c1")).WithContext(ctx).Should(beReady())
		Expect(shared.now(ctx, "s8-c1").UID).NotTo(Equal(was.UID))
		Eventually(shared.hier("s8-x")).WithContext(ctx).Should(settled())
	})

	It("which a policy of somebody else refuses", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("refused-x"))
		policy, bound := build.Policy("refused-x", admissionv1.Create, v1alpha1.GroupVersion.WithResource("subnamespaces"),
			"object.metadata.name != 'refused-c'", "not this one")
		shared.Create(ctx, policy, bound)
		DeferCleanup(func(ctx SpecContext) { _ = client.IgnoreNotFound(shared.Admin().Delete(ctx, bound)) })
		Eventually(func() error {
			return shared.Admin().Create(ctx, subNamespace("refused-x/refused-c"), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("not this one")))
		shared.wish(ctx, "refused-x", build.Requiring("refused-c", "refused-d"))
		Eventually(shared.sub("refused-x/refused-d")).WithContext(ctx).Should(beReady())
		Eventually(shared.hier("refused-x")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonChildPending,
			"making the required SubNamespace refused-x/refused-c: ", "not this one"))
		shared.Delete(ctx, bound)
		Eventually(shared.hier("refused-x")).WithContext(ctx).Should(settled())
	})

	It("where there is no room, or no tree", func(ctx SpecContext) {
		shared.Create(ctx, build.Tenant("room-small").Limits(1, -1).Object(), build.Namespace("room-plain"))
		Eventually(shared.ns("room-small")).WithContext(ctx).Should(standing("room-small", "0"))
		shared.wish(ctx, "room-small", build.Requiring("room-c1", "room-c2"))
		Eventually(shared.hier("room-small")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonLimitExceeded,
			"tenant room-small allows 1 sub-namespaces (1 in use)"))
		edit(ctx, shared, build.Tenant("room-small").Object(), func(l *v1alpha1.LNamespace) { *l.Spec.Limits.SubNamespaces = 2 })
		Eventually(shared.hier("room-small")).WithContext(ctx).Should(settled())

		shared.wish(ctx, "room-plain", build.Requiring("room-c3"))
		Eventually(shared.hier("room-plain")).WithContext(ctx).Should(unready(children, v1alpha1.ReasonNotInForest, "room-plain is in no tree"))
		shared.label(ctx, "room-plain", v1alpha1.LabelType+"="+v1alpha1.TypeRoot)
		Eventually(shared.hier("room-plain")).WithContext(ctx).Should(settled())
	})
})

var _ = Describe("a HierarchyConfiguration hands labels down", func() {
	It("HIER-I1 namespaces below team-a follow its value of a propagated label, and lose it when the key leaves the list; team-a "+
		"keeps it, others never have it; HIER-I2 with webhooks off, the value that org propagates replaces that of team-a, and all "+
		"lose it, team-a too, when org drops the key", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i1-org"), build.Child("i1-team-a", "i1-org", "cost", "7"), build.Child("i1-svc-1", "i1-team-a"),
			build.Child("i1-team-b", "i1-org"))
		Eventually(shared.ns("i1-svc-1")).WithContext(ctx).Should(And(standing("i1-org", "2"), lack("cost")))
		shared.wish(ctx, "i1-team-a", build.Propagating("cost"))
		Eventually(shared.ns("i1-svc-1")).WithContext(ctx).Should(carry("cost", "7"))
		shared.label(ctx, "i1-team-a", "cost=8")
		Eventually(shared.ns("i1-svc-1")).WithContext(ctx).Should(carry("cost", "8"))
		Expect(shared.now(ctx, "i1-team-b")).To(lack("cost"))

		shared.label(ctx, "i1-org", "cost=1")
		shared.wish(ctx, "i1-org", build.Propagating("cost"))
		for _, name := range []string{"i1-team-a", "i1-svc-1", "i1-team-b"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("cost", "1"))
		}
		shared.wish(ctx, "i1-org")
		for _, name := range []string{"i1-team-a", "i1-svc-1", "i1-team-b"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(lack("cost"))
		}
		shared.label(ctx, "i1-team-a", "cost=8")
		Eventually(shared.ns("i1-svc-1")).WithContext(ctx).Should(carry("cost", "8"))
		shared.wish(ctx, "i1-team-a")
		Eventually(shared.ns("i1-svc-1")).WithContext(ctx).Should(lack("cost"))
		Expect(shared.now(ctx, "i1-team-a")).To(carry("cost", "8"))
	})

	It("HIER-I6 when svc-1 moves to another tree and back, it has the propagated labels of its present tree alone, and always "+
		"its own", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i6-org", "cost", "1"), build.Child("i6-svc", "i6-org", "own", "1"), build.Root("i6-lab", "price", "2"))
		shared.wish(ctx, "i6-org", build.Propagating("cost"))
		shared.wish(ctx, "i6-lab", build.Propagating("price"))
		Eventually(shared.ns("i6-svc")).WithContext(ctx).Should(And(carry("cost", "1"), lack("price")))
		shared.wish(ctx, "i6-svc", build.Below("i6-lab"))
		Eventually(shared.ns("i6-svc")).WithContext(ctx).Should(And(carry("price", "2"), lack("cost"), carry("own", "1")))
		shared.wish(ctx, "i6-svc", build.Below("i6-org"))
		Eventually(shared.ns("i6-svc")).WithContext(ctx).Should(And(carry("cost", "1"), lack("price"), carry("own", "1")))
	})

	It("and one below stops them", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i3-org", "cost", "1"), build.Child("i3-svc", "i3-org"), build.Child("i3-job", "i3-svc"))
		shared.wish(ctx, "i3-org", build.Propagating("cost"))
		Eventually(shared.ns("i3-job")).WithContext(ctx).Should(carry("cost", "1"))
		shared.wish(ctx, "i3-svc", build.Overriding("cost"))
		for _, name := range []string{"i3-svc", "i3-job"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(lack("cost"))
		}
		shared.label(ctx, "i3-svc", "cost=5")
		Eventually(shared.ns("i3-job")).WithContext(ctx).Should(carry("cost", "5"))
	})
})

var _ = Describe("a HierarchyConfiguration allows cascading deletion", func() {
	It("HIER-D3 if HC(p) is deleted, it is gone at once, children stay, and cascading is off for p", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("d3-p"))
		shared.grow(ctx, "d3-p/d3-c")
		shared.wish(ctx, "d3-p", build.Cascades)
		Eventually(shared.ns("d3-p")).WithContext(ctx).Should(noted(v1alpha1.AnnotationCascading, v1alpha1.True))
		shared.Delete(ctx, build.Hierarchy("d3-p"))
		shared.Gone(ctx, build.Hierarchy("d3-p"))
		Eventually(shared.ns("d3-p")).WithContext(ctx).Should(unnoted(v1alpha1.AnnotationCascading))
		Expect(shared.now(ctx, "d3-c")).To(active())
	})
})

var _ = Describe("the operator is away while a cascade begins", Ordered, ContinueOnFailure, func() {
	var own restarted
	BeforeAll(func(ctx SpecContext) { own.begin(ctx) })

	It("HIER-D2 an operator that was down while p, whose HC cascades, was deleted, deletes bound descendants; unbound f is "+
		"ParentMissing, and a new p does not cascade", func(ctx SpecContext) {
		own.Create(ctx, build.Root("d2-p"))
		own.grow(ctx, "d2-p/d2-c", "d2-c/d2-d")
		own.Create(ctx, build.Child("d2-f", "d2-c"))
		own.wish(ctx, "d2-p", build.Cascades)
		Eventually(own.ns("d2-p")).WithContext(ctx).Should(noted(v1alpha1.AnnotationCascading, v1alpha1.True))
		own.Delete(ctx, build.Namespace("d2-p"))
		own.stop()
		own.Gone(ctx, build.Hierarchy("d2-p"))
		own.start(ctx)
		for _, name := range []string{"d2-p", "d2-c", "d2-d"} {
			own.Gone(ctx, build.Namespace(name))
		}
		Eventually(own.hier("d2-f")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentMissing))
		own.Create(ctx, build.Root("d2-p"))
		Eventually(own.ns("d2-p")).WithContext(ctx).Should(And(standing("d2-p", "0"), unnoted(v1alpha1.AnnotationCascading)))
	})

	It("HIER-A5 while 1,000 children are created within 10 s, the status is written at most 20 times; then it has the count "+
		"1,001 and 1,000 names", func(ctx SpecContext) {
		own.Create(ctx, build.Root("a5-x"), build.Child("a5-first", "a5-x"))
		Eventually(own.hier("a5-x")).WithContext(ctx).Should(HaveField("Status.ChildCount", BeEquivalentTo(1)))
		var first []string // in alphabetical order, in which a5-first is the last of all
		for i := range 1000 {
			first = append(first, fmt.Sprintf("a5-%03d", i))
		}
		since, began := own.Mark(ctx), time.Now()
		atOnce(10, func(i int) {
			for _, name := range first[100*i : 100*i+100] {
				own.Create(ctx, build.Child(name, "a5-x"))
			}
		})
		Eventually(own.hier("a5-x")).WithContext(ctx).Should(And(HaveField("Status.ChildCount", BeEquivalentTo(1001)),
			HaveField("Status.Children", Equal(first))))
		reports := own.writesThat(since, func(r audit.Request) bool { return r.Resource == "hierarchyconfigurations" && r.Namespace == "a5-x" })
		most := max(20, int(time.Since(began)/(2*time.Second))+2) // one in two seconds, where they come more slowly than the page says
		Consistently(reports).WithContext(ctx).WithTimeout(10 * time.Second).WithPolling(500 * time.Millisecond).
			Should(WithTransform(func(all []string) int { return len(all) }, BeNumerically("<=", most)))
	})
})
