package trees_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

const (
	halted  = v1alpha1.ConditionHalted
	refused = v1alpha1.ConditionParentApplied
)

var _ = Describe("a namespace is halted", func() {
	It("HIER-C1 with webhooks off, all members of a cycle are InCycle with one text, namespaces below AncestorHalted; no "+
		"Namespace is written, no copy created or deleted; HIER-C2 when a member of the cycle becomes a root, changes made "+
		"meanwhile are carried out, other copies keep their UID, and Event Resumed is sent; HIER-C5 a member of a cycle can be "+
		"deleted: then its child is ParentMissing, and the namespaces below that are AncestorHalted", func(ctx SpecContext) {
		// The cycle grows out of a sound tree, so that there is something to lose: a > b > c > d.
		shared.Create(ctx, build.Root("c1-root"), build.Child("c1-a", "c1-root"), build.Child("c1-b", "c1-a"), build.Child("c1-c", "c1-b"),
			build.Child("c1-d", "c1-c"),
			build.Secret("c1-a", "of-a", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate),
			build.Secret("c1-b", "of-b", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate),
			build.Secret("c1-c", "of-c", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		for _, copied := range []client.Object{build.Secret("c1-d", "of-a", ""), build.Secret("c1-d", "of-b", ""),
			build.Secret("c1-d", "of-c", "")} {
			shared.Exists(ctx, copied)
		}
		shared.label(ctx, "c1-a", v1alpha1.LabelParent+"=c1-c")
		const text = "c1-a -> c1-c -> c1-b -> c1-a"
		for _, name := range []string{"c1-a", "c1-b", "c1-c"} {
			Eventually(shared.hier(name)).WithContext(ctx).Should(And(unready(halted, v1alpha1.ReasonInCycle, text),
				HaveField("Status.Depth", BeNil())))
			Eventually(ctx, shared.Reasons(build.Hierarchy(name))).Should(ContainElement("Halted"))
		}
		Eventually(shared.hier("c1-d")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonAncestorHalted))
		kept := shared.read(ctx, build.Secret("c1-d", "of-c", ""))
		shared.Create(ctx, build.Secret("c1-a", "late", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		shared.Delete(ctx, build.Secret("c1-b", "of-b", ""))
		shared.quiet(ctx, 30*time.Second, "c1-a", "c1-b", "c1-c", "c1-d")
		Expect(shared.Read(build.Secret("c1-d", "of-b", ""))(ctx)).To(Succeed())
		shared.Absent(ctx, build.Secret("c1-d", "late", ""))

		shared.label(ctx, "c1-c", v1alpha1.LabelParent+"-", v1alpha1.LabelType+"="+v1alpha1.TypeRoot)
		shared.Gone(ctx, build.Secret("c1-d", "of-b", ""))
		shared.Exists(ctx, build.Secret("c1-b", "late", ""))
		Expect(shared.read(ctx, build.Secret("c1-d", "of-c", "")).GetUID()).To(Equal(kept.GetUID()))
		for _, name := range []string{"c1-a", "c1-b", "c1-c", "c1-d"} {
			Eventually(shared.hier(name)).WithContext(ctx).Should(And(settled(), say(halted, metav1.ConditionFalse, v1alpha1.ReasonActive)))
			Eventually(ctx, shared.Reasons(build.Hierarchy(name))).Should(ContainElement("Resumed"))
		}
		// Nothing prevents the deletion of a member of a cycle.
		shared.label(ctx, "c1-c", v1alpha1.LabelType+"-", v1alpha1.LabelParent+"=c1-b")
		Eventually(shared.hier("c1-b")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonInCycle))
		shared.Delete(ctx, build.Namespace("c1-b"))
		shared.Gone(ctx, build.Namespace("c1-b"))
		Eventually(shared.hier("c1-c")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentMissing,
			"parent namespace c1-b does not exist"))
		for _, name := range []string{"c1-a", "c1-d"} {
			Eventually(shared.hier(name)).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonAncestorHalted, "c1-c"))
		}
	})

	It("HIER-C3 of two requests at once that exclude each other, one is carried out, and the other reports WouldCycle; nothing "+
		"is halted, in 50 pairs", func(ctx SpecContext) {
		const pairs = 50
		shared.Create(ctx, build.Root("c3-root"))
		for i := range pairs {
			shared.Create(ctx, build.Child(fmt.Sprintf("c3-a%d", i), "c3-root"), build.Child(fmt.Sprintf("c3-b%d", i), "c3-root"))
		}
		for i := range pairs {
			atOnce(2, func(j int) {
				names := []string{fmt.Sprintf("c3-a%d", i), fmt.Sprintf("c3-b%d", i)}
				shared.wish(ctx, names[j], build.Below(names[1-j]))
			})
		}
		for i := range pairs {
			a, b := fmt.Sprintf("c3-a%d", i), fmt.Sprintf("c3-b%d", i)
			Eventually(func(g Gomega) {
				g.Expect([]bool{shared.holds(ctx, a, applied()), shared.holds(ctx, b, applied())}).To(ConsistOf(true, false))
				g.Expect([]bool{
					shared.holds(ctx, a, unready(refused, v1alpha1.ReasonWouldCycle, "would make a cycle")),
					shared.holds(ctx, b, unready(refused, v1alpha1.ReasonWouldCycle, "would make a cycle")),
				}).To(ConsistOf(true, false))
			}).WithContext(ctx).Should(Succeed(), "pair %d", i)
			for _, name := range []string{a, b} {
				Expect(shared.Reasons(build.Hierarchy(name))(ctx)).NotTo(ContainElement("Halted"))
			}
		}
	})

	It("HIER-C4 with webhooks off, a request that would close a cycle reports WouldCycle, and "+
		"is carried out once it would not", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("c4-a"), build.Child("c4-b", "c4-a"))
		Eventually(shared.ns("c4-b")).WithContext(ctx).Should(standing("c4-a", "1"))
		shared.wish(ctx, "c4-a", build.Below("c4-b"))
		Eventually(shared.hier("c4-a")).WithContext(ctx).Should(unready(refused, v1alpha1.ReasonWouldCycle, "c4-a -> c4-b -> c4-a"))
		Eventually(ctx, shared.Reasons(build.Hierarchy("c4-a"))).Should(ContainElement("ParentRefused"))
		shared.label(ctx, "c4-b", v1alpha1.LabelParent+"-", v1alpha1.LabelType+"="+v1alpha1.TypeRoot)
		Eventually(shared.hier("c4-a")).WithContext(ctx).Should(And(applied(), shown("c4-b", 1)))
	})

	It("HIER-O3 x below a plain parent is ParentNotManaged, and heals when the "+
		"parent becomes a root or joins a tree", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("o3-p"), build.Namespace("o3-x"), build.Root("o3-root"))
		shared.wish(ctx, "o3-x", build.Below("o3-p"))
		Eventually(shared.hier("o3-x")).WithContext(ctx).Should(And(unready(halted, v1alpha1.ReasonParentNotManaged, "o3-p"),
			say(refused, metav1.ConditionTrue, v1alpha1.ReasonApplied)))
		shared.label(ctx, "o3-p", v1alpha1.LabelType+"="+v1alpha1.TypeRoot)
		Eventually(shared.hier("o3-x")).WithContext(ctx).Should(And(applied(), shown("o3-p", 1)))
		shared.label(ctx, "o3-p", v1alpha1.LabelType+"-")
		Eventually(shared.hier("o3-x")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentNotManaged))
		shared.wish(ctx, "o3-p", build.Below("o3-root"))
		Eventually(shared.hier("o3-x")).WithContext(ctx).Should(And(applied(), shown("o3-p", 2)))
	})

	It("HIER-O5 when p is deleted, its unbound child x is ParentTerminating, then ParentMissing, and keeps each copy and its "+
		"tree labels; HIER-O6 when p is created again at the same place, x heals: copies without a source are deleted, the others "+
		"keep their UID; HIER-D1 a parent that has only unbound children can be deleted "+
		"without cascading, and they stay", func(ctx SpecContext) {
		held := build.Held(build.ConfigMap("o5-p", "hangs", "x"))
		shared.Create(ctx, build.Root("o5-org"), build.Child("o5-p", "o5-org"), build.Child("o5-x", "o5-p"), held)
		for from, name := range map[string]string{"o5-org": "key", "o5-p": "lost"} {
			shared.Create(ctx, build.Secret(from, name, "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
			shared.Exists(ctx, build.Secret("o5-x", name, ""))
		}
		key, lost := shared.read(ctx, build.Secret("o5-x", "key", "")), shared.read(ctx, build.Secret("o5-x", "lost", ""))
		shared.Delete(ctx, build.Namespace("o5-p"))
		Eventually(shared.hier("o5-x")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentTerminating, "o5-p"))
		shared.LetGo(ctx, held)
		shared.Gone(ctx, build.Namespace("o5-p"))
		Eventually(shared.hier("o5-x")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentMissing, "o5-p"))
		shared.quiet(ctx, 10*time.Second, "o5-x")
		Expect(shared.now(ctx, "o5-x")).To(And(active(), standing("o5-org", "2"), standing("o5-p", "1")))
		Expect(shared.read(ctx, build.Secret("o5-x", "key", "")).GetUID()).To(Equal(key.GetUID()))
		Expect(shared.read(ctx, build.Secret("o5-x", "lost", "")).GetUID()).To(Equal(lost.GetUID()))
		shared.Create(ctx, build.Child("o5-p", "o5-org"))
		shared.Gone(ctx, build.Secret("o5-x", "lost", ""))
		Eventually(shared.hier("o5-x")).WithContext(ctx).Should(settled())
		Expect(shared.read(ctx, build.Secret("o5-x", "key", "")).GetUID()).To(Equal(key.GetUID()))
	})

	It("HIER-T4 a Namespace that is restored with stale tree labels and ancestry is accepted; its keys are corrected at once or, "+
		"if its parent is missing, when it heals", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t4-org"))
		stale := func(name, parent string) client.Object {
			return build.Annotated(build.Child(name, parent, v1alpha1.TreeLabel("t4-elsewhere"), "3", v1alpha1.TreeLabel(name), "0"),
				v1alpha1.AnnotationAncestry, "t4-elsewhere/"+parent+"/"+name)
		}
		shared.Create(ctx, stale("t4-here", "t4-org"), stale("t4-early", "t4-late"))
		Eventually(shared.ns("t4-here")).WithContext(ctx).Should(And(standing("t4-org", "1"), lack(v1alpha1.TreeLabel("t4-elsewhere")),
			noted(v1alpha1.AnnotationAncestry, "t4-org/t4-here")))
		Eventually(shared.hier("t4-early")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentMissing))
		shared.Create(ctx, build.Child("t4-late", "t4-org"))
		Eventually(shared.ns("t4-early")).WithContext(ctx).Should(And(standing("t4-org", "2"), lack(v1alpha1.TreeLabel("t4-elsewhere"))))
	})
})

var _ = Describe("a tree", func() {
	It("HIER-T2 selectors on the tree label of org choose org and all below, all below, or its children alone", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t2-org"), build.Child("t2-a", "t2-org"), build.Child("t2-b", "t2-a"))
		Eventually(shared.ns("t2-b")).WithContext(ctx).Should(standing("t2-org", "2"))
		label := v1alpha1.TreeLabel("t2-org")
		for selector, want := range map[string][]string{
			label: {"t2-org", "t2-a", "t2-b"}, label + "," + label + " notin (0)": {"t2-a", "t2-b"}, label + "=1": {"t2-a"},
		} {
			Eventually(shared.selected).WithArguments(ctx, selector).Should(ConsistOf(want))
		}
	})

	It("HIER-T3 a move of a namespace with 300 below it writes each of the 301 Namespaces once; no tree label of the old root is "+
		"left", func(ctx SpecContext) {
		const many = 300
		shared.Create(ctx, build.Root("t3-org"), build.Root("t3-other"), build.Child("t3-team", "t3-org"))
		names := []string{"t3-team"}
		atOnce(10, func(i int) {
			for j := range many / 10 {
				shared.Create(ctx, build.Child(fmt.Sprintf("t3-%d", i*many/10+j), "t3-team"))
			}
		})
		for i := range many {
			names = append(names, fmt.Sprintf("t3-%d", i))
		}
		under := func(root string) func() []string {
			return func() []string {
				return shared.selected(ctx, v1alpha1.TreeLabel(root)+","+v1alpha1.TreeLabel(root)+" notin (0)")
			}
		}
		Eventually(under("t3-org")).Should(HaveLen(many + 1))
		since := shared.Mark(ctx)
		shared.label(ctx, "t3-team", v1alpha1.LabelParent+"=t3-other")
		Eventually(under("t3-other")).Should(HaveLen(many + 1))
		Expect(under("t3-org")()).To(BeEmpty())
		shared.quiet(ctx, 3*time.Second, names...)
		Expect(shared.namespaceWrites(since, names...)(ctx)).To(HaveLen(many + 1))
	})
})
