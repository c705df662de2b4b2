package trees_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

var _ = Describe("a namespace is placed below a parent", func() {
	It("SUB-T5 without webhooks, a Namespace below a template, a terminating root or a plain namespace is halted and steady; it joins when "+
		"the plain one becomes a root", func(ctx SpecContext) {
		going, content := build.Root("t5-going", "team", "neco"), build.Held(build.ConfigMap("t5-going", "hangs", "x"))
		shared.Create(ctx, build.Template("t5-template", "team", "neco"), going, content, build.Namespace("t5-plain", "team", "neco"))
		shared.Delete(ctx, going)
		parents := map[string]string{"t5-a": "t5-template", "t5-b": "t5-going", "t5-c": "t5-plain"}
		for name, parent := range parents {
			shared.Create(ctx, build.Child(name, parent), build.SubNamespace(name, name+"-below"))
			Eventually(shared.sub(name + "/" + name + "-below")).WithContext(ctx).Should(stall(v1alpha1.ReasonParentNotManaged, "is halted"))
		}
		shared.quiet(ctx, 10*time.Second, "t5-a", "t5-b", "t5-c")
		for name := range parents {
			Expect(shared.now(ctx, name)).To(And(lack("team"), lack(v1alpha1.TreeLabel(name))))
		}
		shared.label(ctx, "t5-plain", v1alpha1.LabelType+"=root")
		Eventually(shared.ns("t5-c")).WithContext(ctx).Should(And(carry("team", "neco"), standing("t5-plain", "1")))
		Eventually(shared.sub("t5-c/t5-c-below")).WithContext(ctx).Should(beReady())
		shared.LetGo(ctx, content)
	})

	It("SUB-T6 a Namespace whose parent does not exist has no inherited label and is steady; once the parent is created as a root, it has "+
		"the root's label", func(ctx SpecContext) {
		shared.Create(ctx, build.Child("t6-c", "t6-r"))
		shared.quiet(ctx, 10*time.Second, "t6-c")
		Expect(shared.now(ctx, "t6-c")).To(And(lack("team"), unnoted(v1alpha1.AnnotationInherited)))
		shared.Create(ctx, build.Root("t6-r", "team", "a"))
		Eventually(shared.ns("t6-c")).WithContext(ctx).Should(And(carry("team", "a"), standing("t6-r", "1")))
	})

	It("SUB-T7 a child whose parent is set to a missing name, and back later, keeps inherited labels and copies all the time, without a "+
		"write", func(ctx SpecContext) {
		start := shared.Mark(ctx)
		shared.Create(ctx, build.Root("t7-payments", "team", "neco"), build.Child("t7-c", "t7-payments"),
			build.Secret("t7-payments", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		Eventually(shared.ns("t7-c")).WithContext(ctx).Should(carry("team", "neco"))
		shared.Exists(ctx, build.Secret("t7-c", "key", "x"))
		Eventually(shared.writes(start, "t7-c")).WithContext(ctx).Should(ContainElement(HavePrefix("create secrets t7-c/key")),
			"the audit log has the copy")
		since := shared.Mark(ctx)
		versions := shared.follow(ctx, called("t7-c"))
		shared.label(ctx, "t7-c", v1alpha1.LabelParent+"=t7-nowhere")
		shared.quiet(ctx, 10*time.Second, "t7-c")
		Expect(shared.Read(build.Secret("t7-c", "key", "x"))(ctx)).To(Succeed())
		shared.label(ctx, "t7-c", v1alpha1.LabelParent+"=t7-payments")
		shared.quiet(ctx, 10*time.Second, "t7-c")
		// No write at all: neither the labels nor the copy were ever gone.
		Expect(shared.writes(since, "t7-c")(ctx)).To(BeEmpty())
		Expect(versions.versions("t7-c")).To(And(HaveLen(3), HaveEach(carry("team", "neco"))))
		Expect(shared.Read(build.Secret("t7-c", "key", "x"))(ctx)).To(Succeed())
	})

	It("HIER-O7 with webhooks off, if mallory takes the name of x's deleted parent, x is ParentReplaced, and no copy or "+
		"RoleBinding of mallory's exists there; SEC-W35 conditions of a child whose parent was replaced do not name the new "+
		"parent's tree", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("o7-org"), build.Child("o7-p", "o7-org"), build.Child("o7-x", "o7-p"), build.Root("o7-mallory"),
			build.Secret("o7-mallory", "bait", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate), build.SubNamespace("o7-x", "o7-below"),
			build.Labelled(build.RoleBinding("o7-mallory", "mallory", "admin", build.RBACUser("mallory")), v1alpha1.LabelPropagate,
				v1alpha1.ModeUpdate))
		Eventually(shared.ns("o7-x")).WithContext(ctx).Should(standing("o7-org", "2"))
		Eventually(shared.sub("o7-x/o7-below")).WithContext(ctx).Should(beReady())
		shared.Delete(ctx, build.Namespace("o7-p"))
		shared.Gone(ctx, build.Namespace("o7-p"))
		shared.Create(ctx, build.SubNamespace("o7-mallory", "o7-p"))
		Eventually(shared.sub("o7-mallory/o7-p")).WithContext(ctx).Should(beReady())
		shared.Exists(ctx, build.Secret("o7-p", "bait", "x"))
		Eventually(shared.sub("o7-x/o7-below")).WithContext(ctx).Should(stall(v1alpha1.ReasonParentNotManaged,
			"ParentReplaced", "parent namespace o7-p at o7-org/o7-p was deleted, and a new namespace of that name is at another place"))
		Eventually(shared.hier("o7-x")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentReplaced))
		shared.quiet(ctx, 5*time.Second, "o7-x", "o7-below")
		for _, name := range []string{"o7-x", "o7-below"} {
			shared.Absent(ctx, build.Secret(name, "bait", "x"), build.RoleBinding(name, "mallory", "admin"))
		}
		hier, err := shared.hier("o7-x")(ctx)
		Expect(err).NotTo(HaveOccurred())
		sub, err := shared.sub("o7-x/o7-below")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(fmt.Sprintf("%+v %+v", hier.Status, sub.Status)).To(And(ContainSubstring("o7-p"), Not(ContainSubstring("o7-mallory"))),
			"whoever reads o7-x does not learn where the new parent is")
		// A cluster admin may accept it.
		shared.annotate(ctx, "o7-x", v1alpha1.AnnotationAncestry+"-")
		Eventually(shared.ns("o7-x")).WithContext(ctx).Should(standing("o7-mallory", "2"))
		shared.Exists(ctx, build.Secret("o7-below", "bait", "x"))
	})

	It("that is moved, and goes along", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("mv-org"), build.Root("mv-other"), build.Child("mv-p", "mv-org"), build.Child("mv-x", "mv-p"))
		Eventually(shared.ns("mv-x")).WithContext(ctx).Should(standing("mv-org", "2"))
		shared.label(ctx, "mv-p", v1alpha1.LabelParent+"=mv-other")
		Eventually(shared.ns("mv-x")).WithContext(ctx).Should(And(standing("mv-other", "2"), lack(v1alpha1.TreeLabel("mv-org"))))
	})

	It("SUB-M7 if the parents of a and b are set to each other at once, both are halted, and nothing is deleted or relabelled; both heal "+
		"when one is set back", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("m7-root", "team", "neco"), build.Child("m7-a", "m7-root"), build.Child("m7-b", "m7-root"))
		for _, name := range []string{"m7-a", "m7-b"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(standing("m7-root", "1"))
		}
		other := map[string]string{"m7-a": "m7-b", "m7-b": "m7-a"}
		atOnce(2, func(i int) {
			name := []string{"m7-a", "m7-b"}[i]
			shared.label(ctx, name, v1alpha1.LabelParent+"="+other[name])
		})
		for name := range other {
			shared.Create(ctx, build.SubNamespace(name, name+"-below"))
			Eventually(shared.sub(name + "/" + name + "-below")).WithContext(ctx).
				Should(stall(v1alpha1.ReasonParentNotManaged, "halted (InCycle)", "m7-a -> m7-b -> m7-a"))
		}
		// The operator may have moved the namespace whose label it saw first, because there was no cycle yet.
		a, b := shared.now(ctx, "m7-a"), shared.now(ctx, "m7-b")
		shared.quiet(ctx, 10*time.Second, "m7-a", "m7-b")
		for _, was := range []interface{ GetName() string }{a, b} {
			Expect(shared.now(ctx, was.GetName())).To(And(active(), carry("team", "neco")))
		}
		shared.label(ctx, "m7-a", v1alpha1.LabelParent+"=m7-root")
		Eventually(shared.ns("m7-a")).WithContext(ctx).Should(standing("m7-root", "1"))
		Eventually(shared.ns("m7-b")).WithContext(ctx).Should(And(standing("m7-root", "2"), standing("m7-a", "1")))
		Eventually(shared.sub("m7-b/m7-b-below")).WithContext(ctx).Should(beReady())
	})

	It("SUB-T15 with policies and without, a child that loses parent loses inherited labels, tree labels and the copy of a RoleBinding, and "+
		"keeps its own labels", func(ctx SpecContext) {
		leaving(ctx, shared)
		leaving(ctx, startWorld(ctx, devcluster.Options{WithoutPolicies: true, Operator: devcluster.OperatorOptions{Config: fixture}}))
	})
})

// leaving takes a sub-namespace with inherited keys and a copy out of its tree.
func leaving(ctx SpecContext, c cluster) {
	GinkgoHelper()
	c.Create(ctx, build.Root("t15-root", "team", "neco"), build.Child("t15-c", "t15-root", "own", "1"),
		build.Source(build.RoleBinding("t15-root", "alice", "view", build.RBACUser("alice")), v1alpha1.ModeUpdate))
	Eventually(c.ns("t15-c")).WithContext(ctx).Should(And(carry("team", "neco"), standing("t15-root", "1")))
	binding := build.RoleBinding("t15-c", "alice", "view")
	c.Exists(ctx, binding)
	c.label(ctx, "t15-c", v1alpha1.LabelParent+"-")
	Eventually(c.ns("t15-c")).WithContext(ctx).Should(And(lack("team"), carry("own", "1"),
		lack(v1alpha1.TreeLabel("t15-root")), lack(v1alpha1.TreeLabel("t15-c")),
		unnoted(v1alpha1.AnnotationInherited), unnoted(v1alpha1.AnnotationAncestry)))
	c.Gone(ctx, binding)
}
