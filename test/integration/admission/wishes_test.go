package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/words"
)

// hier reads the HierarchyConfiguration of a namespace.
func (c cluster) hier(ctx SpecContext, namespace string) func() (*v1alpha1.HierarchyConfiguration, error) {
	return func() (*v1alpha1.HierarchyConfiguration, error) {
		hc := build.Hierarchy(namespace)
		return hc, c.Admin().Get(ctx, client.ObjectKeyFromObject(hc), hc)
	}
}

// applied matches a HierarchyConfiguration whose namespace is below parent, as the object asks.
func applied(parent string) types.GomegaMatcher {
	return And(ready("True", v1alpha1.ReasonSettled), HaveField("Status.Parent", parent), condition(v1alpha1.ConditionParentApplied, "True",
		v1alpha1.ReasonApplied))
}

// condition matches an object with such a condition.
var condition = words.HaveCondition

// The operator carries out what these objects ask for.
var _ = Describe("a user's HierarchyConfiguration", func() {
	It("HIER-P4 with RBAC on HC(solo) alone, a user may set spec.parent to the parent that a label gave solo, and it is Applied; "+
		"HIER-P5 with webhooks, a user with RBAC on HC(solo) alone may change other fields while the label contradicts spec.parent; "+
		"solo does not move", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("p4-org"), build.Root("p4-other"), build.Namespace("p4-solo"))
		shared.let(ctx, "p4-user", "author", "p4-solo")
		Expect(shared.wish(ctx, build.Hierarchy("p4-solo", build.Below("p4-org")))).To(allow())
		Eventually(shared.hier(ctx, "p4-solo")).Should(applied("p4-org"))
		Expect(shared.label(ctx, "p4-solo", "parent=p4-other")).To(allow())
		Eventually(shared.hier(ctx, "p4-solo")).Should(ready("False", v1alpha1.ReasonLabelChanged))
		as := func(hc *v1alpha1.HierarchyConfiguration) answer {
			return shared.wish(ctx, hc, "--as=p4-user", "--force-conflicts")
		}
		Eventually(as).WithArguments(build.Hierarchy("p4-solo", build.Below("p4-org"), build.Cascades)).Should(allow())
		Eventually(shared.ns("p4-solo")).WithContext(ctx).Should(And(carry(v1alpha1.LabelParent, "p4-other"),
			HaveField("ObjectMeta.Annotations", HaveKeyWithValue(v1alpha1.AnnotationCascading, v1alpha1.True))))
		Eventually(shared.hier(ctx, "p4-solo")).Should(ready("False", v1alpha1.ReasonLabelChanged)) // of the new generation
		Expect(as(build.Hierarchy("p4-solo", build.Below("p4-other")))).To(allow())
		Eventually(shared.hier(ctx, "p4-solo")).Should(applied("p4-other"))
		Expect(as(build.Hierarchy("p4-solo", build.Below("p4-org")))).
			To(refuse("forbidden", `in namespace "p4-other" (root of the current tree)`))
	})

	It("HIER-S4 when x, formerly bound, was moved to other by labels, HC(x){parent: org} is checked as a move from other; then "+
		"deleting SubNamespace org/x keeps x", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s4-org"), build.Root("s4-other"))
		shared.grow(ctx, "s4-org/s4-x")
		shared.let(ctx, "s4-user", "author", "s4-x")
		shared.let(ctx, "s4-user", "adm", "s4-org")
		Expect(shared.label(ctx, "s4-x", "bound-", "parent=s4-other")).To(HaveField("Code", 0))
		Eventually(shared.ns("s4-x")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("s4-other"), "1"))
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("s4-x", build.Below("s4-org")), "--as=s4-user").
			Should(refuse(`in namespace "s4-other" (root of the current tree)`))
		shared.let(ctx, "s4-user", "adm", "s4-other")
		shared.let(ctx, "s4-user", "whole", "s4-x")
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("s4-x", build.Below("s4-org")), "--as=s4-user").Should(allow())
		Eventually(shared.hier(ctx, "s4-x")).Should(applied("s4-org"))
		Expect(shared.kubectl(ctx, "delete", "subns", "s4-x", "-n", "s4-org")).To(HaveField("Code", 0))
		shared.Gone(ctx, build.SubNamespace("s4-org", "s4-x"))
		Consistently(shared.ns("s4-x")).WithContext(ctx).WithTimeout(quiet).Should(And(active(), carry(v1alpha1.TreeLabel("s4-org"), "1")))
	})

	It("HIER-M03 a move of root other below team-a needs adm(team-a) and all(other); other loses label type, and lab, its child, "+
		"moves along", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("m03-org"), build.Child("m03-team", "m03-org"), build.Root("m03-other"),
			build.Child("m03-lab", "m03-other"))
		Eventually(shared.ns("m03-team")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("m03-org"), "1"))
		judged(ctx, "M03", move{x: "m03-other", target: "m03-team", asks: []grant{proposed("m03-team"), whole("m03-other")}})
		Expect(shared.wish(ctx, build.Hierarchy("m03-other", build.Below("m03-team")), "--as=m03-0-without-2")).To(allow())
		Eventually(shared.ns("m03-lab")).WithContext(ctx).Should(And(carry(v1alpha1.TreeLabel("m03-org"), "3"),
			carry(v1alpha1.TreeLabel("m03-other"), "1")))
		Expect(shared.now(ctx, "m03-other")).To(And(lack(v1alpha1.LabelType), carry(v1alpha1.LabelParent, "m03-team")))
	})

	It("HIER-M21 plain solo, whose name SubNamespace org/solo waits for, moves below org by adm(org) and all(solo), unbound; the "+
		"SubNamespace reports Conflict, and its deletion keeps solo", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("m21-org"), build.Namespace("m21-solo", v1alpha1.LabelBound, v1alpha1.True))
		Expect(shared.create(ctx, build.SubNamespace("m21-org", "m21-solo"))).To(HaveField("Code", 0))
		Eventually(shared.sub("m21-org", "m21-solo")).WithContext(ctx).Should(ready("False", v1alpha1.ReasonNameTaken))
		judged(ctx, "M21", move{x: "m21-solo", target: "m21-org", asks: []grant{proposed("m21-org"), whole("m21-solo")}})
		Expect(shared.wish(ctx, build.Hierarchy("m21-solo", build.Below("m21-org")), "--as=m21-0-without-2")).To(allow())
		Eventually(shared.hier(ctx, "m21-solo")).Should(applied("m21-org"))
		Expect(shared.now(ctx, "m21-solo")).To(lack(v1alpha1.LabelBound))
		Eventually(shared.sub("m21-org", "m21-solo")).WithContext(ctx).Should(ready("False", v1alpha1.ReasonConflict))
		Expect(shared.kubectl(ctx, "delete", "subns", "m21-solo", "-n", "m21-org")).To(HaveField("Code", 0))
		shared.Gone(ctx, build.SubNamespace("m21-org", "m21-solo"))
		Consistently(shared.ns("m21-solo")).WithContext(ctx).WithTimeout(quiet).Should(And(active(), carry(v1alpha1.TreeLabel("m21-org"), "1")))
	})

	It("HIER-S5 with webhooks, a new name in requiredChildren needs the right to create SubNamespaces in x, a removed one does "+
		"not; the children are created, AllPresent; HIER-S8 with webhooks, deleting the SubNamespace of a required child is "+
		"refused, unless x is being deleted", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s5-x"), build.ClusterRole("s5-maker", build.Rule(v1alpha1.Domain, "subnamespaces", "create", "delete")))
		shared.let(ctx, "s5-user", "author", "s5-x")
		requiring := build.Hierarchy("s5-x", build.Requiring("s5-c1", "s5-c2"))
		Eventually(shared.wish).WithArguments(ctx, requiring, "--as=s5-user").Should(refuse("spec.requiredChildren",
			`needs create on subnamespaces in namespace "s5-x"`))
		shared.let(ctx, "s5-user", "s5-maker", "s5-x")
		Eventually(shared.wish).WithArguments(ctx, requiring, "--as=s5-user").Should(allow())
		Eventually(shared.hier(ctx, "s5-x")).Should(And(ready("True", v1alpha1.ReasonSettled), condition(v1alpha1.ConditionChildrenReady, "True",
			v1alpha1.ReasonAllPresent)))
		for _, name := range []string{"s5-c1", "s5-c2"} {
			Expect(shared.now(ctx, name)).To(carry(v1alpha1.LabelParent, "s5-x"))
		}
		deletion := []string{"delete", "subns", "s5-c1", "-n", "s5-x", "--as=s5-user", "--wait=false"}
		Expect(shared.kubectl(ctx, deletion...)).To(refuse("is required by HierarchyConfiguration s5-x/hierarchy"))
		shared.let(ctx, "s5-taker", "author", "s5-x")
		Eventually(shared.wish).WithArguments(ctx, build.Hierarchy("s5-x", build.Requiring("s5-c2")), "--as=s5-taker",
			"--force-conflicts").Should(allow())
		Eventually(shared.kubectl).WithArguments(ctx, deletion[0], deletion[1], deletion[2], deletion[3], deletion[4], deletion[5], deletion[6]).
			Should(HaveField("Code", 0))
		// If the deletion cascades, a required child doesn't prevent it.
		Expect(shared.wish(ctx, build.Hierarchy("s5-x", build.Requiring("s5-c2"), build.Cascades), "--force-conflicts")).To(allow())
		Eventually(shared.kubectl).WithArguments(ctx, "delete", "namespace", "s5-x", "--wait=false").Should(HaveField("Code", 0))
		for _, name := range []string{"s5-x", "s5-c2"} {
			shared.Gone(ctx, build.Namespace(name))
		}
	})

	It("takes no namespace that waits for a parent of a name that it requires", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("sq-x"), build.Root("sq-mallory"), build.Secret("sq-mallory", "bait", "x", v1alpha1.LabelPropagate,
			v1alpha1.ModeUpdate))
		Expect(shared.wish(ctx, build.Hierarchy("sq-x", build.Below("sq-p")))).To(warn("sq-p does not exist"))
		Eventually(shared.ns("sq-x")).WithContext(ctx).Should(carry(v1alpha1.LabelParent, "sq-p"))
		Expect(shared.wish(ctx, build.Hierarchy("sq-mallory", build.Requiring("sq-p", "sq-q")))).To(allow())
		Eventually(shared.hier(ctx, "sq-mallory")).Should(And(ready("False", v1alpha1.ReasonChildConflict),
			HaveField("Status.Conditions", ContainElement(HaveField("Message", HavePrefix(`other namespaces wait for a parent named "sq-p"`))))))
		shared.Exists(ctx, build.Secret("sq-q", "bait", ""))
		shared.Absent(ctx, build.SubNamespace("sq-mallory", "sq-p"), build.Secret("sq-x", "bait", ""))
	})

	It("HIER-O2 with webhooks, a request for a missing p has a Warning, and x is ParentMissing; when root p is created, x "+
		"gets its labels and copies", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("o2-x"))
		Expect(shared.wish(ctx, build.Hierarchy("o2-x", build.Below("o2-p")))).To(warn("parent namespace o2-p does not exist"))
		Eventually(shared.hier(ctx, "o2-x")).Should(And(ready("False", v1alpha1.ReasonParentMissing),
			condition(v1alpha1.ConditionHalted, "True", v1alpha1.ReasonParentMissing)))
		shared.Create(ctx, build.Root("o2-p"), build.Secret("o2-p", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		Eventually(shared.hier(ctx, "o2-x")).Should(And(applied("o2-p"), condition(v1alpha1.ConditionHalted, "False", v1alpha1.ReasonActive)))
		shared.Exists(ctx, build.Secret("o2-x", "key", ""))
		Eventually(shared.ns("o2-x")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("o2-p"), "1"))
	})

	It("HIER-I2 with webhooks, to propagate a label of org is refused while team-a has another value of it, which the answer "+
		"names; HIER-I3 with webhooks, to override a key that team-a propagates needs adm(team-a), and svc-1 and job lose it; "+
		"HIER-I4 with webhooks, a plain namespace whose own value would be replaced joins team-a only if it overrides the key, and "+
		"keeps its value", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i3-org", "cost", "1"), build.Child("i3-team-a", "i3-org"), build.Child("i3-svc-1", "i3-team-a"),
			build.Child("i3-job", "i3-svc-1"),
			build.Namespace("i3-guest", "cost", "9"))
		Eventually(shared.ns("i3-job")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("i3-org"), "3"))
		Expect(shared.wish(ctx, build.Hierarchy("i3-team-a", build.Propagating("cost")))).To(allow())
		Expect(shared.kubectl(ctx, "label", "namespace", "i3-team-a", "cost=8")).To(HaveField("Code", 0))
		for _, name := range []string{"i3-svc-1", "i3-job"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("cost", "8"))
		}
		Expect(shared.wish(ctx, build.Hierarchy("i3-org", build.Propagating("cost")))).
			To(refuse("spec.propagatedLabels", "labels would be replaced: i3-team-a cost (8); "+
				"first remove them, or keep them: list their keys in spec.overriddenLabels of their namespaces' HierarchyConfigurations"))
		shared.let(ctx, "i3-user", "author", "i3-svc-1")
		overriding := build.Hierarchy("i3-svc-1", build.Overriding("cost"))
		Eventually(shared.wish).WithArguments(ctx, overriding, "--as=i3-user").Should(refuse(`in namespace "i3-team-a" (it propagates "cost")`))
		shared.let(ctx, "i3-user", "adm", "i3-team-a")
		Eventually(shared.wish).WithArguments(ctx, overriding, "--as=i3-user").Should(allow())
		for _, name := range []string{"i3-svc-1", "i3-job"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(lack("cost"))
		}
		Expect(shared.wish(ctx, build.Hierarchy("i3-guest", build.Below("i3-team-a")))).
			To(refuse("spec.parent", "labels would be replaced: i3-guest cost (9)"))
		Expect(shared.wish(ctx, build.Hierarchy("i3-guest", build.Below("i3-team-a"), build.Overriding("cost")))).To(allow())
		Eventually(shared.hier(ctx, "i3-guest")).Should(applied("i3-team-a"))
		Expect(shared.now(ctx, "i3-guest")).To(carry("cost", "9"))
	})

	It("HIER-A6 users with role view or edit can read a HierarchyConfiguration, but not create or change it; users with admin "+
		"can", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("a6-x"), build.Namespace("a6-none"))
		Expect(shared.wish(ctx, build.Hierarchy("a6-x"))).To(allow())
		for _, role := range []string{"view", "edit", "admin"} {
			as := "--as=a6-" + role
			shared.let(ctx, "a6-"+role, role, "a6-x")
			shared.let(ctx, "a6-"+role, role, "a6-none")
			for _, namespace := range []string{"a6-x", "a6-none"} {
				Eventually(shared.kubectl).WithArguments(ctx, "get", "hier", "-n", namespace, as).Should(HaveField("Code", 0))
			}
			Expect(shared.kubectl(ctx, "get", "hier", "hierarchy", "-n", "a6-x", as)).To(HaveField("Code", 0))
			created := shared.create(ctx, build.Hierarchy("a6-none"), as)
			changed := shared.kubectl(ctx, "patch", "hier", "hierarchy", "-n", "a6-x", "--type=merge",
				`-p={"spec":{"allowCascadingDeletion":true}}`, as)
			if role == "admin" {
				Expect(created).To(allow())
				Expect(changed).To(allow())
				Expect(shared.hier(ctx, "a6-x")()).To(HaveField("Spec.AllowCascadingDeletion", true))
				continue
			}
			Expect(created).To(refuse("(Forbidden)", `cannot create resource "hierarchyconfigurations"`))
			Expect(changed).To(refuse("(Forbidden)", `cannot patch resource "hierarchyconfigurations"`))
			for _, verb := range []string{"update", "delete"} {
				Expect(shared.kubectl(ctx, "auth", "can-i", verb, "hier", "-n", "a6-x", as)).To(HaveField("Out", HavePrefix("no")))
			}
		}
	})
})
