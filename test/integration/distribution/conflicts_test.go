package distribution_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// seen waits until the operator knows these namespaces. The watches of namespaces and of ResourceDistributions are two: where that of
// namespaces is behind, an obstacle's namespace would join after the check, and be judged alone.
func (f *field) seen(ctx context.Context, names ...string) {
	GinkgoHelper()
	probe := f.object(func(rd *v1alpha1.ResourceDistribution) {
		rd.Name, rd.Spec.Suspend = "probe-"+rand.String(6), true // without f.id: its requests are none of the case's
		rd.Spec.Targets = v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)}
		rd.Spec.Resource = raw(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": rd.Name}})
	})
	Expect(f.Admin().Create(ctx, probe)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(probe), probe)).To(Succeed())
		g.Expect(probe.Status.Plan).NotTo(BeNil())
		g.Expect(probe.Status.Plan.Create.Namespaces).To(ConsistOf(names))
	}).Should(Succeed())
	Expect(f.Admin().Delete(ctx, probe)).To(Succeed())
}

var _ = Describe("a conflict", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D21 Fail: an unrelated Secret in d2 stays unchanged and prevents all copies; Ready False/Conflict, Stalled, [d2 Unrelated], "+
		"one Event on RD, one on the Secret; "+
		"DIST-D22 when the obstacle in d2 is deleted, all three copies are created; Ready is True, with Event "+
		"ConflictResolved", func(ctx SpecContext) {
		obstacle := f.obstacle(ctx, f.d2, "mine")
		f.seen(ctx, f.d1, f.d2, f.d3)
		f.create(ctx)
		rd := f.becomes(ctx, "False/Conflict")
		Expect(rd.Status.Conflicts).To(BeEquivalentTo(1))
		Expect(conflicts(rd)).To(Equal([]string{f.d2 + ":Unrelated"}))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("Conflict"))
		free := v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionConflictFree)
		Expect(free.Message).To(ContainSubstring("kubectl get secrets -A --field-selector metadata.name=" + f.id + " -l '" +
			v1alpha1.LabelDistributedBy + "!=" + f.id + "'"))
		f.rests(ctx)
		Expect(f.at(ctx, f.d1)).To(BeNil())
		Expect(f.at(ctx, f.d3)).To(BeNil())
		f.untouched(ctx, obstacle)
		Eventually(ctx, f.Messages(rd, v1alpha1.ReasonConflict)).Should(HaveLen(1))
		Eventually(ctx, f.Messages(obstacle, v1alpha1.ReasonDistributionConflict)).Should(HaveLen(1))
		Expect(f.Admin().Delete(ctx, obstacle)).To(Succeed())
		f.distributed(ctx, "v=1", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
		Eventually(ctx, f.Messages(rd, v1alpha1.ReasonConflictResolved)).Should(HaveLen(1))
		f.rests(ctx)
	})

	It("DIST-D24 a namespace that becomes a target with an obstacle is in conflict alone; existing copies stay, "+
		"and a later target gets its copy; "+
		"DIST-D25 when the data change, all copies are updated, although one namespace is in conflict", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		d4, d5 := f.id+"-d4", f.id+"-d5"
		f.namespace(ctx, d4)
		obstacle := f.obstacle(ctx, d4, "mine")
		Expect(f.Admin().Patch(ctx, build.Namespace(d4), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"dist":"`+f.id+`"}}}`)))).To(Succeed())
		Expect(conflicts(f.becomes(ctx, "False/Conflict"))).To(Equal([]string{d4 + ":Unrelated"}))
		f.namespace(ctx, d5, "dist", f.id)
		f.distributed(ctx, "v=1", f.d1, f.d2, f.d3, d5)
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1, f.d2, f.d3, d5)
		Expect(f.ends(ctx, "False/Conflict").Status.Current).To(BeEquivalentTo(4))
		f.untouched(ctx, obstacle)
	})

	It("DIST-D26 if a change of the targets adds five namespaces, one in conflict, none of the five gets a copy; "+
		"existing copies stay and get new data", func(ctx SpecContext) {
		naming := func(names ...string) change {
			return targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)})
		}
		f.create(ctx, naming(f.d1, f.d2, f.d3))
		f.becomes(ctx, "True/Distributed")
		var more []string
		for i := range 5 {
			more = append(more, fmt.Sprintf("%s-m%d", f.id, i))
			f.namespace(ctx, more[i])
		}
		obstacle := f.obstacle(ctx, more[3], "mine")
		f.seen(ctx, more...)
		f.change(ctx, naming(append(more, f.d1, f.d2, f.d3)...))
		Expect(conflicts(f.becomes(ctx, "False/Conflict"))).To(Equal([]string{more[3] + ":Unrelated"}))
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1, f.d2, f.d3)
		for _, namespace := range []string{more[0], more[1], more[2], more[4]} {
			Consistently(ctx, f.data).WithArguments(namespace).WithTimeout(test.Quiet(soon / 4)).Should(BeEmpty())
		}
		f.untouched(ctx, obstacle)
	})

	It("DIST-D27 under Skip the other targets get copies, and the obstacle is unchanged; Ready True/Skipped, "+
		"conflicts 1", func(ctx SpecContext) {
		obstacle := f.obstacle(ctx, f.d2, "mine")
		f.create(ctx, onConflict(v1alpha1.ConflictSkip))
		rd := f.becomes(ctx, "True/Skipped")
		Expect([]int32{rd.Status.Current, rd.Status.Conflicts}).To(Equal([]int32{2, 1}))
		f.distributed(ctx, "v=1", f.d1, f.d3)
		f.untouched(ctx, obstacle)
	})

	It("DIST-D28 AdoptIdentical: while another obstacle differs, nothing is written; without it, the equal one is adopted (same UID, "+
		"annotation `adopted`, no ownerReference), and other copies are created; "+
		"DIST-D29 when RD is deleted, the copies that it created are deleted; an adopted object stays, without Warren's "+
		"keys", func(ctx SpecContext) {
		equal := f.obstacle(ctx, f.d2, "", func(s *corev1.Secret) {
			s.Data, s.Labels = map[string][]byte{"v": []byte("1")}, map[string]string{"theirs": "yes"}
		})
		other := f.obstacle(ctx, f.d3, "", func(s *corev1.Secret) { s.Data = map[string][]byte{"v": []byte("2")} })
		f.seen(ctx, f.d1, f.d2, f.d3)
		f.create(ctx, onConflict(v1alpha1.ConflictAdoptIdentical))
		Eventually(ctx, func() []string { return conflicts(f.read(ctx)) }).Should(ContainElement(f.d3+":NotIdentical"), f.explain)
		f.untouched(ctx, equal)
		Expect(f.at(ctx, f.d1)).To(BeNil())
		Expect(f.Admin().Delete(ctx, other)).To(Succeed())
		f.distributed(ctx, "v=1", f.d1, f.d3)
		f.becomes(ctx, "True/Distributed")
		adopted := f.at(ctx, f.d2)
		Expect(adopted.UID).To(Equal(equal.UID))
		Expect(adopted.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationAdopted, v1alpha1.True))
		Expect(adopted.Labels).To(HaveKeyWithValue("theirs", "yes"))
		Expect(adopted.OwnerReferences).To(BeEmpty())

		f.remove(ctx)
		f.absent(ctx, f.d1, f.d3)
		Eventually(ctx, func() map[string]string { return f.at(ctx, f.d2).Annotations }).Should(BeEmpty(), f.explain)
		left := f.at(ctx, f.d2)
		Expect(left.UID).To(Equal(equal.UID))
		Expect(left.Labels).NotTo(HaveKey(v1alpha1.LabelDistributedBy))
	})

	It("DIST-D31 under Overwrite d2's Secret keeps its UID, and gets RD's data and annotation `adopted`; Event Overwrote names d2, "+
		"and no content", func(ctx SpecContext) {
		obstacle := f.obstacle(ctx, f.d2, "s3ntinel-mine")
		f.create(ctx, onConflict(v1alpha1.ConflictOverwrite))
		f.distributed(ctx, "v=1", f.d1, f.d2, f.d3)
		rd := f.becomes(ctx, "True/Distributed")
		over := f.at(ctx, f.d2)
		Expect(over.UID).To(Equal(obstacle.UID))
		Expect(over.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationAdopted, v1alpha1.True))
		Eventually(ctx, f.Messages(rd, v1alpha1.ReasonOverwrote)).
			Should(ConsistOf(And(ContainSubstring(f.d2), Not(ContainSubstring("s3ntinel")))))
	})

	It("DIST-D32 Overwrite changes no obstacle that is Propagated (copy or source), Controlled, TypeDiffers, Immutable or BeingDeleted, "+
		"and reports these reasons; other targets get copies", func(ctx SpecContext) {
		root, child := f.id+"-root", f.id+"-child"
		Expect(f.Admin().Create(ctx, build.Tenant(root).Object())).To(Succeed())
		Eventually(ctx, func() error {
			return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.SubNamespace(root, child)))
		}).Should(Succeed())
		Eventually(ctx, func() error {
			return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Source(build.Secret(root, f.id, "mine"), v1alpha1.ModeUpdate)))
		}).Should(Succeed())
		Eventually(ctx, f.data).WithArguments(child).ShouldNot(BeEmpty())
		yes := true
		owned := f.obstacle(ctx, f.d1, "mine", func(s *corev1.Secret) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: f.d1, UID: f.uid(ctx, f.d1), Controller: &yes}}
		})
		typed := f.obstacle(ctx, f.d2, "mine", func(s *corev1.Secret) { s.Type = "example.com/other" })
		frozen := f.obstacle(ctx, f.d3, "mine", func(s *corev1.Secret) { s.Immutable = &yes })
		held := f.obstacle(ctx, f.x1, "mine", func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })
		DeferCleanup(func(ctx SpecContext) {
			f.LetGo(ctx, held)
		})
		Expect(f.Admin().Delete(ctx, held)).To(Succeed())
		free := f.id + "-free"
		f.namespace(ctx, free)
		f.create(ctx, onConflict(v1alpha1.ConflictOverwrite),
			targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(root, child, f.d1, f.d2, f.d3, f.x1, free)}))
		f.distributed(ctx, "v=1", free)
		Eventually(ctx, func() []string { return conflicts(f.read(ctx)) }).Should(ConsistOf(
			root+":Propagated", child+":Propagated", f.d1+":Controlled", f.d2+":TypeDiffers", f.d3+":Immutable", f.x1+":BeingDeleted"), f.explain)
		f.becomes(ctx, "True/Skipped")
		for _, was := range []*corev1.Secret{owned, typed, frozen} {
			f.untouched(ctx, was)
		}
	})

	It("DIST-D33 two RDs under Skip for the same targets: `current` of both adds up to 3; when one is deleted, "+
		"the other's copies are created", func(ctx SpecContext) {
		other := f.object(func(rd *v1alpha1.ResourceDistribution) { rd.Name += "-other" }, f.holding(map[string]string{"v": "other"}),
			onConflict(v1alpha1.ConflictSkip))
		Expect(f.Admin().Create(ctx, other)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, other) })
		f.create(ctx, onConflict(v1alpha1.ConflictSkip))
		sum := func() int32 {
			Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
			return other.Status.Current + f.read(ctx).Status.Current
		}
		Eventually(ctx, sum).Should(BeEquivalentTo(3), f.explain)
		f.rests(ctx)
		Expect(f.Admin().Delete(ctx, other)).To(Succeed())
		f.distributed(ctx, "v=1", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D34 where a propagated copy exists, RD is in conflict: Propagated, by the source's namespace; where RD's copy exists, "+
		"a later source gets Event Conflict; the first object stays unchanged", func(ctx SpecContext) {
		root, child := f.id+"-root", f.id+"-child"
		Expect(f.Admin().Create(ctx, build.Tenant(root).Object())).To(Succeed())
		Eventually(ctx, func() error {
			return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.SubNamespace(root, child)))
		}).Should(Succeed())
		Eventually(ctx, func() error {
			return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Source(build.Secret(root, f.id, "theirs"), v1alpha1.ModeUpdate)))
		}).Should(Succeed())
		Eventually(ctx, f.data).WithArguments(child).ShouldNot(BeEmpty())
		was := f.at(ctx, child)
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(child)}))
		rd := f.becomes(ctx, "False/Conflict")
		Expect(conflicts(rd)).To(Equal([]string{child + ":Propagated"}))
		Expect(rd.Status.ConflictingNamespaces[0].By).To(Equal(root))
		f.untouched(ctx, was)

		g := plough(ctx, world)
		Eventually(ctx, func() error {
			return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.SubNamespace(root, g.id)))
		}).Should(Succeed())
		Eventually(ctx, func() error { return f.Admin().Get(ctx, client.ObjectKey{Name: g.id}, &corev1.Namespace{}) }).Should(Succeed())
		g.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(g.id)}))
		g.becomes(ctx, "True/Distributed")
		was = g.at(ctx, g.id)
		source := build.Source(build.Secret(root, g.id, "theirs"), v1alpha1.ModeUpdate)
		Expect(f.Admin().Create(ctx, source)).To(Succeed())
		Eventually(ctx, g.Messages(source, v1alpha1.ReasonConflict)).Should(ContainElement(ContainSubstring(g.id)))
		Consistently(ctx, g.data).WithArguments(g.id).WithTimeout(test.Quiet(soon)).Should(Equal("v=1"))
		g.untouched(ctx, was)
	})

	It("DIST-D78 a Secret with all keys of d1's copy is not the operator's elsewhere: never written in x1, and a conflict, Unrelated, "+
		"in a target", func(ctx SpecContext) {
		d9 := f.id + "-d9"
		f.namespace(ctx, d9)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		stolen := func(namespace string) *corev1.Secret {
			s := f.at(ctx, f.d1)
			s.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: s.Name, Labels: s.Labels, Annotations: s.Annotations}
			Expect(f.Admin().Create(ctx, s)).To(Succeed())
			return s
		}
		in, out := stolen(d9), stolen(f.x1)
		Expect(f.Admin().Patch(ctx, build.Namespace(d9), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"dist":"`+f.id+`"}}}`)))).To(Succeed())
		Expect(conflicts(f.becomes(ctx, "False/Conflict"))).To(Equal([]string{d9 + ":Unrelated"}))
		f.rests(ctx)
		f.untouched(ctx, in)
		f.untouched(ctx, out)
	})

	It("DIST-D83 `kubectl warren distribution`: list prints numbers and reason, describe the namespace in conflict, plan what RD would do, "+
		"plan -f what the file would do", func(ctx SpecContext) {
		f.obstacle(ctx, f.d2, "mine")
		f.seen(ctx, f.d1, f.d2, f.d3)
		f.create(ctx)
		f.becomes(ctx, "False/Conflict")
		warren := func(stdin string, args ...string) string {
			GinkgoHelper()
			out, stderr, code := f.KubectlWith(ctx, "admin", stdin, append([]string{"warren", "distribution"}, args...)...)
			Expect(code).To(BeZero(), stderr)
			return out
		}
		Expect(warren("", "list", f.id)).To(MatchRegexp(f.id + ` +3 +0 +0 +2 +1 +0 +False +Conflict`))
		Expect(warren("", "describe", f.id)).To(And(ContainSubstring("0 of 3 copies are current"),
			ContainSubstring("In conflict (1):\n  "+f.d2+": Unrelated")))
		Expect(warren("", "plan", f.id)).To(And(ContainSubstring("create 2: "+f.d1+", "+f.d3),
			ContainSubstring("conflict 1: "+f.d2+" (Unrelated)"), ContainSubstring("the operator creates no copy while there is a conflict")))
		changed := `{apiVersion: ` + v1alpha1.GroupVersion.String() + `, kind: ResourceDistribution, metadata: {name: ` + f.id +
			`}, spec: {resource: {apiVersion: v1, kind: Secret, metadata: {name: ` + f.id +
			`}}, targets: {includedNamespaces: [{name: ` + f.x1 + `}]}}}`
		Expect(warren(changed, "plan", "-f", "-")).To(Equal("create 1: " + f.x1 + "\n"))
	})

	It("DIST-D122 with -o, distribution list prints the objects as json, yaml or name, and distribution describe the object; plan prints "+
		"its steps", func(ctx SpecContext) {
		f.obstacle(ctx, f.d2, "mine")
		f.seen(ctx, f.d1, f.d2, f.d3)
		f.create(ctx)
		f.becomes(ctx, "False/Conflict")
		printed := func(args ...string) (document map[string]any) {
			GinkgoHelper()
			out, stderr, code := f.Kubectl(ctx, "admin", append([]string{"warren", "distribution"}, args...)...)
			Expect(code).To(BeZero(), stderr)
			Expect(yaml.Unmarshal([]byte(out), &document)).To(Succeed(), out)
			return document
		}
		one := And(HaveKeyWithValue("kind", "ResourceDistribution"), HaveKeyWithValue("status", HaveKeyWithValue("conflicts", BeEquivalentTo(1))))
		for _, format := range []string{"json", "yaml"} {
			Expect(printed("list", f.id, "-o", format)).To(And(HaveKeyWithValue("kind", "ResourceDistributionList"),
				HaveKeyWithValue("items", ConsistOf(one))))
			Expect(printed("describe", f.id, "-o", format)).To(one)
			Expect(printed("plan", f.id, "-o", format)).To(HaveKeyWithValue("steps", ContainElement(HaveKeyWithValue("what", "conflict"))))
		}
		out, _, _ := f.Kubectl(ctx, "admin", "warren", "distribution", "list", f.id, "-o", "name")
		Expect(out).To(Equal("resourcedistribution.tenancy.warren.dev/" + f.id + "\n"))
	})

	It("DIST-D23 of 150 conflicts in 200 targets the status lists the first 100 by name; conflicts is 150; "+
		"the message's command prints all 150", func(ctx SpecContext) {
		names := f.namespaces(ctx, 200)
		conflict := func(taken []string) *v1alpha1.ResourceDistribution {
			GinkgoHelper()
			var rd *v1alpha1.ResourceDistribution
			Eventually(ctx, func() int32 {
				rd = f.becomes(ctx, "False/Conflict")
				return rd.Status.Conflicts
			}).Should(BeEquivalentTo(len(taken)), f.explain)
			var listed []string
			for _, one := range rd.Status.ConflictingNamespaces {
				listed = append(listed, one.Name)
			}
			Expect(listed).To(Equal(taken[:min(len(taken), 100)]))
			return rd
		}
		for _, name := range names[:3] {
			f.obstacle(ctx, name, "mine")
		}
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)}))
		conflict(names[:3])
		for _, name := range names[3:150] {
			f.obstacle(ctx, name, "mine")
		}
		message := v1alpha1.FindCondition(conflict(names[:150]).Status.Conditions, v1alpha1.ConditionReady).Message
		Expect(message).To(ContainSubstring("150 namespaces"))
		_, command, _ := strings.Cut(message, "; kubectl ")
		command, _, isThere := strings.Cut(command, " lists all")
		Expect(isThere).To(BeTrue(), message)
		out, stderr, code := f.Kubectl(ctx, "admin", strings.Fields(strings.ReplaceAll(command, "'", ""))...)
		Expect(code).To(BeZero(), stderr)
		Expect(strings.Count(out, f.id+"-n")).To(Equal(150))
	})
})
