package guides_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a namespace that exists already, with overlay standard", func() {
	It("HIER-P14 a request without a mark waits: the Warning, Event ParentRefused and three conditions have the command that "+
		"sets the mark; then the namespace is placed without a Warning", func(ctx SpecContext) {
		world.Create(ctx, build.Tenant("p14-pay").Object(), build.Namespace("p14-legacy"))
		Eventually(metadata("p14-pay")).WithContext(ctx).Should(HaveKeyWithValue(v1alpha1.LabelType, v1alpha1.TypeRoot))
		const command = "kubectl warren mark p14-legacy p14-pay"
		ask := func() answer {
			return apply(ctx, build.Hierarchy("p14-legacy", build.Below("p14-pay")))
		}
		Expect(ask()).To(And(HaveField("Code", 0), HaveField("Err", And(HavePrefix("Warning: the request waits"), ContainSubstring(command)))))
		Eventually(hierarchy("p14-legacy")).WithContext(ctx).Should(And(
			reports(v1alpha1.ConditionParentApplied, metav1.ConditionUnknown, v1alpha1.ReasonPending, command),
			reports(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPending, command),
			reports(v1alpha1.ConditionMetadataSynced, metav1.ConditionFalse, v1alpha1.ReasonMetadataRejected, command),
			reports(v1alpha1.ConditionPropagated, metav1.ConditionUnknown, v1alpha1.ReasonPending, "spec.parent is not carried out")))
		Eventually(line(ctx, "events", "-n", "p14-legacy")).WithContext(ctx).
			Should(HaveField("Out", MatchRegexp(`Warning +ParentRefused .*`+command)))

		mark := []string{"warren", "mark", "p14-legacy", "p14-pay"}
		Expect(asAdmin(ctx, append(mark, "--dry-run=client")...)).To(Equal(answer{"namespace/p14-legacy marked (dry run)\n", "", 0}))
		Expect(asAdmin(ctx, mark...)).To(Equal(answer{"namespace/p14-legacy marked\n", "", 0}))
		Eventually(hierarchy("p14-legacy")).WithContext(ctx).Should(And(
			reports(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSettled, ""),
			reports(v1alpha1.ConditionPropagated, metav1.ConditionTrue, v1alpha1.ReasonInSync, "")))
		Eventually(metadata("p14-legacy")).WithContext(ctx).Should(Not(HaveKey(v1alpha1.AnnotationAdopt)), "a mark counts once")
		Expect(ask()).To(And(HaveField("Code", 0), HaveField("Err", BeEmpty())), "nothing waits any more")
		Expect(asAdmin(ctx, "warren", "mark", "p14-legacy", "default")).To(And(HaveField("Code", 1), HaveField("Err",
			"error: namespace default is neither a root nor a sub-namespace: make it a root first: kubectl warren set-type default root\n")))
	})

	It("HIER-P15 a cluster admin's kubectl warren set makes a plain parent a root, marks the namespace, and waits until it is "+
		"placed, also as a root; no mark is left", func(ctx SpecContext) {
		world.Create(ctx, build.Namespace("p15-org"), build.Namespace("p15-team"), build.Namespace("p15-solo"))
		const hier = "hierarchyconfiguration.tenancy.warren.dev/hierarchy created\n"
		set := func(args ...string) answer { return asAdmin(ctx, append([]string{"warren", "set"}, args...)...) }
		Expect(set("p15-team", "--parent", "p15-org")).
			To(Equal(answer{"namespace/p15-org made a root\nnamespace/p15-team marked\n" + hier, "", 0}))
		Expect(metadata("p15-team")(ctx)).To(And(HaveKeyWithValue(v1alpha1.LabelParent, "p15-org"), Not(HaveKey(v1alpha1.AnnotationAdopt))))
		Expect(set("p15-solo", "--root")).To(Equal(answer{"namespace/p15-solo marked\n" + hier, "", 0}))
		Expect(metadata("p15-solo")(ctx)).To(And(HaveKeyWithValue(v1alpha1.LabelType, v1alpha1.TypeRoot), Not(HaveKey(v1alpha1.AnnotationAdopt))))
		By("from one tree into another, which needs no mark")
		Expect(set("p15-solo", "--parent", "p15-team")).
			To(Equal(answer{"hierarchyconfiguration.tenancy.warren.dev/hierarchy configured\n", "", 0}))
		Expect(metadata("p15-solo")(ctx)).To(HaveKeyWithValue(v1alpha1.LabelParent, "p15-team"))
		Expect(set("p15-org", "--parent", "p15-solo")).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("would make a cycle"))))
	})

	It("HIER-P16 if the API server refuses the HierarchyConfiguration, kubectl warren set ends with status 1, and takes back the "+
		"root that it made and the mark", func(ctx SpecContext) {
		world.Create(ctx, build.Namespace("p16-org"), build.Tenant("p16-pay").Object())
		Eventually(metadata("p16-pay")).WithContext(ctx).Should(HaveKeyWithValue(v1alpha1.LabelType, v1alpha1.TypeRoot))
		Eventually(asAdmin).WithContext(ctx).WithArguments("warren", "set", "p16-pay", "--parent", "p16-org").Should(And(HaveField("Code", 1),
			HaveField("Err", ContainSubstring("p16-pay belongs to LNamespace p16-pay and stays a root"))))
		Expect(metadata("p16-org")(ctx)).NotTo(HaveKey(v1alpha1.LabelType))
		Expect(metadata("p16-pay")(ctx)).NotTo(HaveKey(v1alpha1.AnnotationAdopt))

		By("which a quota refuses after the command has marked the namespace")
		full := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "p16-x", Name: "full"}}
		full.Spec.Hard = corev1.ResourceList{"count/hierarchyconfigurations." + v1alpha1.Domain: resource.MustParse("0")}
		world.Create(ctx, build.Namespace("p16-x"), full)
		Eventually(asAdmin).WithContext(ctx).WithArguments("get", "resourcequotas", "-n", "p16-x", "-o", "jsonpath={.items[0].status.hard}").
			Should(HaveField("Out", ContainSubstring("hierarchyconfigurations")))
		Expect(asAdmin(ctx, "warren", "set", "p16-x", "--parent", "p16-org")).To(And(HaveField("Code", 1),
			HaveField("Out", ContainSubstring("namespace/p16-org made a root\nnamespace/p16-x marked\n")),
			HaveField("Err", ContainSubstring("exceeded quota"))))
		Expect(metadata("p16-org")(ctx)).NotTo(HaveKey(v1alpha1.LabelType))
		Expect(metadata("p16-x")(ctx)).NotTo(HaveKey(v1alpha1.AnnotationAdopt))
	})

	It("HIER-P17 kubectl warren set ends with status 2 and the reason if the request waits for a mark, or the new place is "+
		"halted; with --wait=false, or marked, with 0", func(ctx SpecContext) {
		world.Create(ctx, build.Tenant("p17-pay").Users("alice").Object(), build.Namespace("p17-legacy"),
			build.RoleBinding("p17-legacy", "alice", "cluster-admin", build.RBACUser("alice")))
		Eventually(func() answer {
			return kubectl(ctx, "alice", "warren", "set", "p17-legacy", "--parent", "p17-pay")
		}).WithContext(ctx).Should(And(HaveField("Code", 2),
			HaveField("Err", And(ContainSubstring("error: the request of namespace p17-legacy is stored, but not carried out: Pending"),
				ContainSubstring("kubectl warren mark p17-legacy p17-pay")))))
		Expect(kubectl(ctx, "alice", "warren", "set", "p17-legacy", "--parent", "p17-pay", "--wait=false").Code).To(BeZero())
		Expect(asAdmin(ctx, "warren", "mark", "p17-legacy", "p17-pay").Code).To(BeZero())
		Eventually(func() answer {
			return kubectl(ctx, "alice", "warren", "set", "p17-legacy", "--parent", "p17-pay")
		}).WithContext(ctx).Should(Equal(answer{"hierarchyconfiguration.tenancy.warren.dev/hierarchy unchanged\n", "", 0}))
		By("a parent that does not exist")
		world.Create(ctx, build.Namespace("p17-lost"))
		Expect(asAdmin(ctx, "label", "namespace", "p17-lost", v1alpha1.LabelParent+"=p17-pay").Code).To(BeZero())
		Eventually(asAdmin).WithContext(ctx).WithArguments("warren", "set", "p17-lost", "--parent", "p17-gone").Should(And(HaveField("Code", 2),
			HaveField("Err", ContainSubstring("namespace p17-lost has the place that was asked for, but is halted there: "+
				"ParentMissing: parent namespace p17-gone does not exist"))))
	})

	It("HIER-P20 if no namespace has the parent's name, kubectl warren set ends with status 2; Warning and message of Pending "+
		"first tell that, then what to correct", func(ctx SpecContext) {
		world.Create(ctx, build.Namespace("p20-solo"))
		const missing = "parent namespace p20-gone does not exist: "
		Expect(asAdmin(ctx, "warren", "set", "p20-solo", "--parent", "p20-gone")).To(And(HaveField("Code", 2),
			HaveField("Err", ContainSubstring("Warning: "+missing+"a namespace below it is halted until the parent exists; "+
				"correct the name, or create the parent"))))
		// Only the request that changes something brings the Warning; the operator's first report may come before it has tried.
		Eventually(asAdmin).WithContext(ctx).WithArguments("warren", "set", "p20-solo", "--parent", "p20-gone").Should(And(HaveField("Code", 2),
			HaveField("Err", ContainSubstring("but not carried out: Pending: "+missing+
				"correct spec.parent, or create the parent; the API server refuses"))))
	})

	It("HIER-P18 while HC(a){parent: b} waits, HC(b){parent: a} has a Warning that the two requests exclude each other, and b is "+
		"Pending with the same words", func(ctx SpecContext) {
		world.Create(ctx, build.Namespace("p18-a"), build.Namespace("p18-b"))
		Expect(apply(ctx, build.Hierarchy("p18-a", build.Below("p18-b")))).To(HaveField("Code", 0))
		const excludes = "the HierarchyConfiguration of namespace p18-a waits for a place below p18-b: the two requests exclude each other; " +
			"take one of them back"
		Eventually(func() answer {
			return apply(ctx, build.Hierarchy("p18-b", build.Below("p18-a")), "--dry-run=server")
		}).WithContext(ctx).Should(HaveField("Err", ContainSubstring(excludes)))
		Expect(apply(ctx, build.Hierarchy("p18-b", build.Below("p18-a")))).To(HaveField("Err", ContainSubstring(excludes)))
		Eventually(hierarchy("p18-b")).WithContext(ctx).Should(reports(v1alpha1.ConditionParentApplied, metav1.ConditionUnknown,
			v1alpha1.ReasonPending, excludes))
	})
})

// reports matches a HierarchyConfiguration with a condition whose message contains text.
func reports(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.Reason, text string) types.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", string(kind)), HaveField("Status", status),
		HaveField("Reason", string(reason)), HaveField("Message", ContainSubstring(text)))))
}
