package trees_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// shown matches an object whose status has this parent and depth.
func shown(parent string, depth int32) types.GomegaMatcher {
	return And(HaveField("Status.Parent", parent), HaveField("Status.Depth", HaveValue(Equal(depth))))
}

// applied matches a HierarchyConfiguration whose namespace is where the object asks for.
func applied() types.GomegaMatcher {
	return And(settled(), say(v1alpha1.ConditionParentApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied))
}

// place makes a root, and a plain namespace that asks for a place below it.
func (c cluster) place(ctx SpecContext, name, root string) {
	GinkgoHelper()
	c.Create(ctx, build.Root(root), build.Namespace(name))
	c.wish(ctx, name, build.Below(root))
	Eventually(c.hier(name)).WithContext(ctx).Should(applied())
}

var _ = Describe("a HierarchyConfiguration", func() {
	It("HIER-P1 a request places plain solo below org with one write of Namespace solo; status, condition Applied and Event "+
		"ParentChanged tell it", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("p1-org"), build.Namespace("p1-solo"))
		since := shared.Mark(ctx)
		shared.wish(ctx, "p1-solo", build.Below("p1-org"))
		Eventually(shared.hier("p1-solo")).WithContext(ctx).Should(And(applied(), shown("p1-org", 1)))
		Expect(shared.now(ctx, "p1-solo")).To(And(carry(v1alpha1.LabelParent, "p1-org"), standing("p1-org", "1"), standing("p1-solo", "0"),
			noted(v1alpha1.AnnotationAncestry, "p1-org/p1-solo")))
		Eventually(ctx, shared.Reasons(build.Hierarchy("p1-solo"))).Should(ConsistOf("ParentChanged"))
		shared.quiet(ctx, 10*time.Second, "p1-solo")
		Expect(shared.namespaceWrites(since, "p1-solo")(ctx)).To(HaveLen(1))
		Eventually(shared.hier("p1-org")).WithContext(ctx).Should(And(
			HaveField("ObjectMeta.Labels", HaveKeyWithValue("app.kubernetes.io/managed-by", v1alpha1.OperatorName)), HaveField("Spec", BeZero()),
			HaveField("Status.Children", ConsistOf("p1-solo")), HaveField("Status.ChildCount", BeEquivalentTo(1))), "an unbound child is listed")
	})

	DescribeTable("HIER-P2 if spec.parent is removed or set to the empty string, solo becomes a root: copies from org go, own "+
		"objects and children stay", func(ctx SpecContext, prefix string, wishes ...build.Wish) {
		org, solo, below := prefix+"-org", prefix+"-solo", prefix+"-below"
		shared.place(ctx, solo, org)
		shared.Create(ctx, build.Child(below, solo), build.Secret(solo, "own", "x"), build.Secret(org, "key", "x", v1alpha1.LabelPropagate,
			v1alpha1.ModeUpdate))
		for _, name := range []string{solo, below} {
			shared.Exists(ctx, build.Secret(name, "key", ""))
		}
		shared.wish(ctx, solo, wishes...)
		Eventually(shared.ns(solo)).WithContext(ctx).Should(And(lack(v1alpha1.LabelParent), carry(v1alpha1.LabelType, v1alpha1.TypeRoot),
			noted(v1alpha1.AnnotationAncestry, solo), lack(v1alpha1.TreeLabel(org))))
		Eventually(shared.ns(below)).WithContext(ctx).Should(And(standing(solo, "1"), lack(v1alpha1.TreeLabel(org))))
		for _, name := range []string{solo, below} {
			shared.Gone(ctx, build.Secret(name, "key", ""))
		}
		Expect(shared.Read(build.Secret(solo, "own", ""))(ctx)).To(Succeed())
		Eventually(shared.hier(solo)).WithContext(ctx).Should(And(settled(), shown("", 0)))
	}, Entry("by the field removed", "p2-a"), Entry("by a wish to be a root", "p2-b", build.Below("")))

	It("HIER-P3 if a cluster admin moves solo by its label, it moves, the spec stays, LabelChanged is reported, and the operator "+
		"writes nothing more to solo; HIER-P4 a spec.parent that is set to the parent in the label is Applied with one write of the "+
		"Namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("p3-other"))
		shared.place(ctx, "p3-solo", "p3-org")
		shared.label(ctx, "p3-solo", v1alpha1.LabelParent+"=p3-other")
		Eventually(shared.hier("p3-solo")).WithContext(ctx).Should(And(shown("p3-other", 1), HaveField("Spec.Parent", HaveValue(Equal("p3-org"))),
			unready(v1alpha1.ConditionParentApplied, v1alpha1.ReasonLabelChanged,
				`p3-solo was moved from "p3-org" to "p3-other" by its label; set spec.parent to "p3-other", or delete this object`)))
		since := shared.Mark(ctx)
		shared.quiet(ctx, time.Minute, "p3-solo")
		Expect(shared.now(ctx, "p3-solo")).To(standing("p3-other", "1"))
		Eventually(ctx, shared.Reasons(build.Hierarchy("p3-solo"))).Should(ContainElement("LabelChanged"))
		shared.wish(ctx, "p3-solo", build.Below("p3-other"))
		Eventually(shared.hier("p3-solo")).WithContext(ctx).Should(And(applied(), shown("p3-other", 1)))
		Eventually(shared.namespaceWrites(since, "p3-solo")).WithContext(ctx).Should(HaveLen(1), "the record of the request")
	})

	It("HIER-P8 kubectl apply of a Namespace manifest without Warren's keys changes none of them; after kubectl replace, the "+
		"operator restores the place from HC(solo); HIER-P9 if a namespace was placed by its label alone, kubectl replace takes it "+
		"out of the forest: its copies are removed, its own objects stay", func(ctx SpecContext) {
		shared.place(ctx, "p8-solo", "p8-org")
		manifest := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"p8-solo","labels":{"theirs":"1"}}}`
		since := shared.Mark(ctx)
		for _, args := range [][]string{{"apply"}, {"apply", "--server-side"}} {
			_, problem, code := shared.KubectlWith(ctx, controlplane.Admin, manifest, append(args, "-f", "-")...)
			Expect(code).To(BeZero(), problem)
			Expect(shared.now(ctx, "p8-solo")).To(standing("p8-org", "1"))
		}
		shared.quiet(ctx, 3*time.Second, "p8-solo")
		Expect(shared.namespaceWrites(since, "p8-solo")(ctx)).To(BeEmpty())
		_, problem, code := shared.KubectlWith(ctx, controlplane.Admin, manifest, "replace", "-f", "-")
		Expect(code).To(BeZero(), problem)
		Eventually(shared.ns("p8-solo")).WithContext(ctx).Should(And(carry(v1alpha1.LabelParent, "p8-org"), standing("p8-org", "1"),
			noted(v1alpha1.AnnotationAncestry, "p8-org/p8-solo"), carry("theirs", "1")))
		// p9-solo is placed by its label alone, so nothing restores its place.
		shared.Create(ctx, build.Child("p9-solo", "p8-org"), build.Secret("p8-org", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate),
			build.Secret("p9-solo", "own", "x"))
		shared.Exists(ctx, build.Secret("p9-solo", "key", ""))
		_, problem, code = shared.KubectlWith(ctx, controlplane.Admin, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"p9-solo"}}`,
			"replace", "-f", "-")
		Expect(code).To(BeZero(), problem)
		shared.Gone(ctx, build.Secret("p9-solo", "key", ""))
		Expect(shared.now(ctx, "p9-solo")).To(And(lack(v1alpha1.LabelParent), lack(v1alpha1.TreeLabel("p8-org"))))
		Expect(shared.Read(build.Secret("p9-solo", "own", ""))(ctx)).To(Succeed())
	})

	It("HIER-P10 if spec.parent changes from org to other and at once to team-a, solo ends in team-a, and keeps no copy from "+
		"other", func(ctx SpecContext) {
		shared.place(ctx, "p10-solo", "p10-org")
		shared.Create(ctx, build.Root("p10-other"), build.Child("p10-team", "p10-org"))
		for _, from := range []string{"p10-org", "p10-other", "p10-team"} {
			shared.Create(ctx, build.Secret(from, "of-"+from, "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		}
		shared.Exists(ctx, build.Secret("p10-solo", "of-p10-org", ""))
		shared.wish(ctx, "p10-solo", build.Below("p10-other"))
		shared.wish(ctx, "p10-solo", build.Below("p10-team"))
		Eventually(shared.hier("p10-solo")).WithContext(ctx).Should(And(applied(), shown("p10-team", 2)))
		shared.Exists(ctx, build.Secret("p10-solo", "of-p10-team", ""))
		shared.Gone(ctx, build.Secret("p10-solo", "of-p10-other", ""))
		Eventually(shared.Read(build.Secret("p10-solo", "of-p10-org", ""))).WithContext(ctx).Should(Succeed(),
			"also where it was below p10-other for a moment")
	})

	It("HIER-S1 an empty HC(x), or one that names its parent, is Ready for bound x, which does not move and gets no type; "+
		"HIER-S2 with webhooks off, another parent in HC(x) moves bound x nowhere, and ParentApplied is False, Bound; HIER-S3 when "+
		"its SubNamespace is deleted, bound x is deleted, and HC(x) does not delay that", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s1-org"), build.Root("s1-other"))
		shared.grow(ctx, "s1-org/s1-x")
		for _, wishes := range [][]build.Wish{{}, {build.Below("s1-org")}, {}} {
			shared.wish(ctx, "s1-x", wishes...)
			Eventually(shared.hier("s1-x")).WithContext(ctx).Should(And(settled(), shown("s1-org", 1)))
			Expect(shared.now(ctx, "s1-x")).To(And(lack(v1alpha1.LabelType), standing("s1-org", "1")))
		}
		shared.wish(ctx, "s1-x", build.Below("s1-other"))
		Eventually(shared.hier("s1-x")).WithContext(ctx).Should(unready(v1alpha1.ConditionParentApplied, v1alpha1.ReasonBound,
			"bound to SubNamespace s1-org/s1-x"))
		Eventually(ctx, shared.Reasons(build.Hierarchy("s1-x"))).Should(ContainElement("ParentRefused"))
		Expect(shared.now(ctx, "s1-x")).To(standing("s1-org", "1"))
		shared.Delete(ctx, subNamespace("s1-org/s1-x"))
		shared.Gone(ctx, build.Namespace("s1-x"))
	})

	It("HIER-T1 the last of four namespaces in a chain, with names of 63 characters, has four tree labels, and the ancestry in "+
		"order", func(ctx SpecContext) {
		var chain []string
		for i := range 4 {
			chain = append(chain, fmt.Sprintf("t1-%d-%s", i, "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-abcdefg"[:58]))
			Expect(chain[i]).To(HaveLen(63))
			if i == 0 {
				shared.Create(ctx, build.Root(chain[0]))
				continue
			}
			shared.Create(ctx, build.Namespace(chain[i]))
			shared.wish(ctx, chain[i], build.Below(chain[i-1]))
		}
		Eventually(shared.hier(chain[3])).WithContext(ctx).Should(applied())
		for i, name := range chain {
			Eventually(shared.ns(chain[3])).WithContext(ctx).Should(standing(name, fmt.Sprint(3-i)))
		}
		Expect(shared.now(ctx, chain[3])).To(noted(v1alpha1.AnnotationAncestry, chain[0]+"/"+chain[1]+"/"+chain[2]+"/"+chain[3]),
			"by the same write")
	})

	It("HIER-A3 an empty HierarchyConfiguration in a plain namespace is NotInForest, and the operator writes nothing to that "+
		"Namespace", func(ctx SpecContext) {
		solo := build.Namespace("a3-solo")
		shared.Create(ctx, solo)
		shared.wish(ctx, "a3-solo")
		Eventually(shared.hier("a3-solo")).WithContext(ctx).Should(say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNotInForest))
		Expect(shared.now(ctx, "a3-solo")).To(HaveField("ObjectMeta.ResourceVersion", solo.ResourceVersion))
		shared.label(ctx, "a3-solo", "a=b")
		shared.quiet(ctx, 5*time.Second, "a3-solo")
	})

	It("HIER-A4 a manifest with false and empty lists that is applied each second changes "+
		"neither resourceVersion nor generation", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("a4-org"))
		manifest :=
			`{"apiVersion":"tenancy.warren.dev/v1alpha1","kind":"HierarchyConfiguration","metadata":{"name":"hierarchy","namespace":"a4-org"},` +
				`"spec":{"allowCascadingDeletion":false,"requiredChildren":[],"propagatedLabels":[]}}`
		apply := func() *v1alpha1.HierarchyConfiguration {
			GinkgoHelper()
			_, problem, code := shared.KubectlWith(ctx, controlplane.Admin, manifest, "apply", "-f", "-")
			Expect(code).To(BeZero(), problem)
			hc, err := shared.hier("a4-org")(ctx)
			Expect(err).NotTo(HaveOccurred())
			return hc
		}
		apply()
		Eventually(shared.hier("a4-org")).WithContext(ctx).Should(settled())
		before := apply()
		Consistently(apply).WithTimeout(test.Quiet(30 * time.Second)).WithPolling(time.Second).Should(And(
			HaveField("ObjectMeta.ResourceVersion", before.ResourceVersion), HaveField("ObjectMeta.Generation", before.Generation)))
	})
})

var _ = Describe("the CRD of HierarchyConfigurations", func() {
	DescribeTable("HIER-A1 the CRD refuses a name other than hierarchy, a malformed or long parent, malformed or repeated "+
		"required children, and an unknown field; HIER-A2 the CRD refuses keys of tenancy.warren.dev and its subdomains as "+
		"propagated or overridden, but not those of xtenancy.warren.dev", func(ctx SpecContext, name, spec string, words ...string) {
		if shared.Read(build.Namespace("a1-ns"))(ctx) != nil {
			_ = shared.Admin().Create(ctx, build.Namespace("a1-ns"))
		}
		manifest :=
			fmt.Sprintf(
				`{"apiVersion":"tenancy.warren.dev/v1alpha1","kind":"HierarchyConfiguration","metadata":{"name":%q,"namespace":"a1-ns"},"spec":%s}`,
				name, spec)
		Expect(json.Valid([]byte(manifest))).To(BeTrue(), manifest)
		_, problem, code := shared.KubectlWith(ctx, controlplane.Admin, manifest, "create", "--dry-run=server", "-f", "-")
		if len(words) == 0 {
			Expect(code).To(BeZero(), problem)
		}
		for _, word := range words {
			Expect(problem).To(ContainSubstring(word))
		}
	},
		Entry("another name", "other", `{}`, `the name must be "hierarchy"; a namespace holds one HierarchyConfiguration`),
		Entry("no name of a namespace", "hierarchy", `{"parent":"Not.A.Name"}`, "spec.parent", "Invalid value", "Not.A.Name"),
		Entry("too long a name", "hierarchy", fmt.Sprintf(`{"parent":%q}`, fmt.Sprintf("%064d", 0)), "spec.parent", "Too long"),
		Entry("a required child that is no name", "hierarchy", `{"requiredChildren":["x.y"]}`, "spec.requiredChildren[0]", "x.y"),
		Entry("a required child twice", "hierarchy", `{"requiredChildren":["c","c"]}`, "spec.requiredChildren[1]", "Duplicate value"),
		Entry("a field that is none", "hierarchy", `{"parnt":"org"}`, "unknown field", "spec.parnt"),
		Entry("a tree label", "hierarchy", `{"propagatedLabels":["a.tree.tenancy.warren.dev/depth"]}`,
			"keys of tenancy.warren.dev and its subdomains can't be propagated"),
		Entry("a key of ours", "hierarchy", `{"overriddenLabels":["tenancy.warren.dev/type"]}`,
			"keys of tenancy.warren.dev and its subdomains can't be propagated"),
		Entry("a key that only looks like ours", "hierarchy", `{"propagatedLabels":["xtenancy.warren.dev/ok"]}`),
	)
})

var _ = Describe("the operator is away while namespaces are placed", Ordered, ContinueOnFailure, func() {
	var own restarted
	BeforeAll(func(ctx SpecContext) { own.begin(ctx) })

	It("HIER-P6 with webhooks off, if HC(solo) is replaced by an empty one while the operator is down, solo stays in org, "+
		"and applied-parent is removed; HIER-P7 with webhooks off, if a cluster admin moves solo by its label while the operator is "+
		"down, it stays there, and LabelChanged is reported", func(ctx SpecContext) {
		own.Create(ctx, build.Root("p7-other"))
		own.place(ctx, "p6-solo", "p6-org")
		own.place(ctx, "p7-solo", "p7-org")
		own.stop()
		own.Delete(ctx, build.Hierarchy("p6-solo"))
		own.Create(ctx, build.Hierarchy("p6-solo"))
		own.label(ctx, "p7-solo", v1alpha1.LabelParent+"=p7-other")
		own.start(ctx)
		Eventually(own.hier("p7-solo")).WithContext(ctx).Should(unready(v1alpha1.ConditionParentApplied, v1alpha1.ReasonLabelChanged))
		Eventually(own.ns("p7-solo")).WithContext(ctx).Should(standing("p7-other", "1"))
		Eventually(own.ns("p6-solo")).WithContext(ctx).Should(And(unnoted(v1alpha1.AnnotationAppliedParent), standing("p6-org", "1"),
			lack(v1alpha1.LabelType)))
		Eventually(own.hier("p6-solo")).WithContext(ctx).Should(And(settled(), say(v1alpha1.ConditionParentApplied, metav1.ConditionTrue,
			v1alpha1.ReasonNotRequested)))
	})

	It("HIER-O1 manifests of a tree of depth 4 settle in any order of files: the first kubectl apply fails only where a "+
		"Namespace is missing, the second nowhere", func(ctx SpecContext) {
		for order := range 3 {
			p := fmt.Sprintf("o1-%d", order)
			files := forestManifests(p)
			dir := GinkgoT().TempDir()
			for i, manifest := range files {
				// kubectl sorts a folder by name.
				at := (i*7 + order*5) % len(files)
				Expect(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d-%02d.json", at, i)), []byte(manifest), 0o600)).To(Succeed())
			}
			_, first, _ := own.Kubectl(ctx, controlplane.Admin, "apply", "-f", dir)
			if first != "" {
				Expect(first).To(And(ContainSubstring("not found"), Not(ContainSubstring("halted"))))
			}
			_, second, code := own.Kubectl(ctx, controlplane.Admin, "apply", "-f", dir)
			Expect(code).To(BeZero(), second)
			Eventually(own.hier(p + "-d")).WithContext(ctx).Should(And(applied(), shown(p+"-c", 4)))
			own.Exists(ctx, build.Secret(p+"-d", "key", ""))
			Eventually(own.ns(p + "-d")).WithContext(ctx).Should(noted(v1alpha1.AnnotationAncestry, p+"-r/"+p+"-a/"+p+"-b/"+p+"-c/"+p+"-d"))
		}
	})
})

// forestManifests are a root, a source in it, and a chain of four namespaces that ask for their places.
func forestManifests(p string) []string {
	manifests := []string{
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%s-r","labels":{"tenancy.warren.dev/type":"root"}}}`, p),
		fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","namespace":"%s-r","labels":{"tenancy.warren.dev/propagate":"update"}}}`,
			p),
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		parent := []string{"r", "a", "b", "c"}[i]
		manifests = append(manifests,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%s-%s"}}`, p, name),
			fmt.Sprintf(
				`{"apiVersion":"tenancy.warren.dev/v1alpha1","kind":"HierarchyConfiguration","metadata":{"name":"hierarchy","namespace":"%s-%s"},`+
					`"spec":{"parent":"%s-%s"}}`, p, name, p, parent))
	}
	return manifests
}
