package distribution_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// with changes spec.resource of the case's object by edit.
func (f *field) with(edit func(map[string]any)) change {
	return func(rd *v1alpha1.ResourceDistribution) {
		resource := f.secret(map[string]string{"v": "1"})
		edit(resource)
		rd.Spec.Resource = raw(resource)
	}
}

var _ = Describe("content", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D15 a change of the data costs one PUT for each copy, and no read of Secrets; source-hash ends with "+
		"resourceHash", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		mark := f.Mark(ctx)
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1, f.d2, f.d3)
		rd := f.becomes(ctx, "True/Distributed")
		Expect(f.at(ctx, f.d1).Annotations[v1alpha1.AnnotationSourceHash]).To(HaveSuffix(":" + rd.Status.ResourceHash))
		got := f.requests(ctx, mark)
		delete(got, "update resourcedistributions/status")
		Expect(got).To(Equal(map[string]int{"update secrets": 3}))
	})

	It("DIST-D16 labels that change in the template change in the copies; labels and annotations that it loses are removed from them; "+
		"DIST-D20 labels and annotations that other users added to a copy stay when RD changes", func(ctx SpecContext) {
		meta := func(labels, annotations map[string]string) change {
			return f.with(func(resource map[string]any) {
				resource["metadata"] = map[string]any{"name": f.id, "labels": labels, "annotations": annotations}
			})
		}
		f.create(ctx, meta(map[string]string{"a": "1", "b": "1"}, map[string]string{"note": "1"}))
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "admin", f.d1, func(s *corev1.Secret) {
			s.Labels["theirs"] = "yes"
			s.Annotations["theirs"] = "yes"
		})).To(Succeed())
		f.change(ctx, meta(map[string]string{"a": "2"}, nil))
		Eventually(ctx, func() map[string]string { return f.at(ctx, f.d2).Labels }).
			Should(Equal(map[string]string{"a": "2", v1alpha1.LabelDistributedBy: f.id}))
		Eventually(ctx, func() map[string]string { return f.at(ctx, f.d1).Labels }).Should(Equal(
			map[string]string{"a": "2", "theirs": "yes", v1alpha1.LabelDistributedBy: f.id}))
		Expect(f.at(ctx, f.d1).Annotations).To(And(HaveKey("theirs"), Not(HaveKey("note"))))
	})

	It("DIST-D17 stringData is merged into data, and its value wins; a key that the template loses is removed from the copies; "+
		"DIST-D18 once the copies are current, nothing is written, also if only RD's own annotations change", func(ctx SpecContext) {
		f.create(ctx, f.with(func(resource map[string]any) {
			resource["data"] = map[string]string{"v": "eA==", "w": "dw=="}
			resource["stringData"] = map[string]string{"v": "1"}
		}))
		f.distributed(ctx, "v=1 w=w", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
		f.rests(ctx)
		f.change(ctx, f.holding(map[string]string{"v": "1"}))
		f.distributed(ctx, "v=1", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
		mark := f.Mark(ctx)
		f.change(ctx, func(rd *v1alpha1.ResourceDistribution) { rd.Annotations = map[string]string{"touched": "yes"} })
		f.rests(ctx)
		Expect(f.requests(ctx, mark)).NotTo(HaveKey("update secrets"))
	})

	It("DIST-D57 a copy that was made immutable is in failedNamespaces, and is not deleted; other copies are current; if a user deletes it, "+
		"a new one is created", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		yes := true
		Expect(f.edit(ctx, "admin", f.d1, func(s *corev1.Secret) { s.Immutable = &yes })).To(Succeed())
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d2, f.d3)
		rd := f.ends(ctx, "False/Failed")
		Expect(rd.Status.FailedNamespaces).To(ConsistOf(And(HaveField("Name", f.d1), HaveField("Reason", v1alpha1.ReasonImmutable),
			HaveField("Message", ContainSubstring("immutable")))))
		Expect(f.data(ctx, f.d1)).To(Equal("v=1"))
		Expect(f.Admin().Delete(ctx, f.at(ctx, f.d1))).To(Succeed())
		f.distributed(ctx, "v=2", f.d1)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D68 after ten changes of the data at once, all three copies have the last data, after at most 30 PUTs", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		mark := f.Mark(ctx)
		for v := range strings.FieldsSeq("2 3 4 5 6 7 8 9 10 11") {
			f.change(ctx, f.holding(map[string]string{"v": v}))
		}
		f.distributed(ctx, "v=11", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
		Expect(f.requests(ctx, mark)["update secrets"]).To(BeNumerically("<=", 30))
	})

	It("DIST-D66 copies refused by a quota and a policy are in failedNamespaces with the API server's text; "+
		"each is created when its cause ends; one Event Failed; "+
		"DIST-D108 with an exceeded quota alone, Ready is False/Failed but RD is not Stalled", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.d2, Name: "none"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")}}}
		Expect(f.Admin().Create(ctx, quota)).To(Succeed())
		// The API server checks against its cached copy of the quota, which may be older than the stored one.
		Eventually(ctx, func() error {
			return f.Admin().Create(ctx, build.Secret(f.d2, "probe", "1"), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("exceeded quota")))
		const message = "no Secret of this name here"
		lift := f.refusing(ctx, f.d3, message, metav1.StatusReasonInvalid)
		f.create(ctx)
		rd := f.ends(ctx, "False/Failed")
		failed := func(namespace, text string) types.GomegaMatcher {
			return And(HaveField("Name", namespace), HaveField("Message", ContainSubstring(text)))
		}
		Expect(rd.Status.FailedNamespaces).To(ConsistOf(failed(f.d2, "exceeded quota"), failed(f.d3, message)))
		Expect(rd.Status.Current).To(BeEquivalentTo(1))
		lift()
		f.distributed(ctx, "v=1", f.d3)
		Eventually(ctx, func() *metav1.Condition {
			rd = f.read(ctx)
			return v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled)
		}).Should(BeNil(), f.explain)
		Expect(whatIsSaid(rd)).To(Equal("False/Failed"))
		Expect(f.Admin().Delete(ctx, quota)).To(Succeed())
		f.distributed(ctx, "v=1", f.d2)
		f.becomes(ctx, "True/Distributed")
		Eventually(ctx, f.Messages(rd, v1alpha1.ReasonFailed)).Should(HaveLen(1))
	})
})

var _ = Describe("a suspended distribution", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })
	It("DIST-D62 while RD is suspended, no copy is written; `status.plan` names what would be created, updated, deleted or in conflict; "+
		"afterwards the operator writes that", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		f.change(ctx, func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Suspend = true }, f.holding(map[string]string{"v": "2"}))
		d4, d5 := f.id+"-d4", f.id+"-d5"
		f.namespace(ctx, d4)
		f.obstacle(ctx, d4, "mine")
		join := func(namespace, value string) {
			Expect(f.Admin().Patch(ctx, build.Namespace(namespace), client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"dist":"`+value+`"}}}`)))).To(Succeed())
		}
		join(d4, f.id)
		join(f.d3, "no")
		f.namespace(ctx, d5, "dist", f.id)
		names := func() [][]string {
			p := f.read(ctx).Status.Plan
			if p == nil {
				return nil
			}
			return [][]string{p.Create.Namespaces, p.Update.Namespaces, p.Delete.Namespaces, p.Conflict.Namespaces}
		}
		Eventually(ctx, names).Should(Equal([][]string{{d5}, {f.d1, f.d2}, {f.d3}, {d4}}), f.explain)
		Expect(f.says(ctx)).To(Equal("False/Suspended"))
		Expect(f.data(ctx, f.d1)).To(Equal("v=1"))
		f.change(ctx, func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Suspend = false })
		f.distributed(ctx, "v=2", f.d1, f.d2, d5)
		f.absent(ctx, f.d3)
		Expect(f.becomes(ctx, "False/Conflict").Status.Plan).To(BeNil())
	})
})

var _ = Describe("drift", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D36 under Ignore a user's edit of a copy stays, also when a new namespace becomes a target; "+
		"DIST-D37 when spec.resource changes, the edited copy equals the template again", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "admin", f.d1, setting("v", "edited"))).To(Succeed())
		f.namespace(ctx, f.id+"-d4", "dist", f.id)
		f.distributed(ctx, "v=1", f.id+"-d4")
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Current }).Should(BeEquivalentTo(4))
		f.rests(ctx)
		Expect(f.data(ctx, f.d1)).To(Equal("v=edited"))
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1)
	})

	It("DIST-D38 a copy that a user deletes, twice in a row, is created again each time, under Ignore and Revert", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		for _, policy := range []v1alpha1.DriftPolicy{v1alpha1.DriftIgnore, v1alpha1.DriftRevert} {
			f.change(ctx, onDrift(policy))
			f.becomes(ctx, "True/Distributed")
			for range 2 {
				was := f.at(ctx, f.d1)
				Expect(f.Admin().Delete(ctx, was)).To(Succeed())
				Eventually(ctx, func() bool { is := f.at(ctx, f.d1); return is != nil && is.UID != was.UID }).Should(BeTrue(), f.explain)
			}
		}
	})

	It("DIST-D39 under Revert a data key that a user adds to a copy is removed; "+
		"DIST-D42 after five corrections of a copy, Event DriftLoop is sent and a further edit stays for a while; "+
		"other copies are corrected at once", func(ctx SpecContext) {
		f.create(ctx, onDrift(v1alpha1.DriftRevert))
		rd := f.becomes(ctx, "True/Distributed")
		Expect(f.at(ctx, f.d1).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationLocked, v1alpha1.True))
		for range 5 {
			Expect(f.edit(ctx, "admin", f.d1, setting("extra", "1"))).To(Succeed())
			f.distributed(ctx, "v=1", f.d1)
		}
		Eventually(ctx, f.Messages(rd, v1alpha1.ReasonDriftLoop)).Should(HaveLen(1))
		Expect(f.edit(ctx, "admin", f.d1, setting("extra", "1"))).To(Succeed())
		Expect(f.edit(ctx, "admin", f.d2, setting("extra", "1"))).To(Succeed())
		f.distributed(ctx, "v=1", f.d2)
		Expect(f.data(ctx, f.d1)).To(Equal("extra=1 v=1"))
	})
})

var _ = Describe("removal", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D44 under deletionPolicy Delete all copies are deleted when RD is deleted", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		f.remove(ctx)
		f.absent(ctx, f.d1, f.d2, f.d3)
	})

	It("DIST-D45 under Orphan copies have no ownerReference; when RD is deleted, they stay, and lose `locked`; "+
		"DIST-D49 RD, created again with other data where such copies exist, updates them in place, without a conflict", func(ctx SpecContext) {
		f.create(ctx, onDeletion(v1alpha1.DeletionOrphan), onDrift(v1alpha1.DriftRevert))
		f.becomes(ctx, "True/Distributed")
		was := f.at(ctx, f.d1)
		Expect(was.OwnerReferences).To(BeEmpty())
		f.remove(ctx)
		Eventually(ctx, func() map[string]string { return f.at(ctx, f.d1).Annotations }).ShouldNot(HaveKey(v1alpha1.AnnotationLocked), f.explain)
		f.rests(ctx)
		Expect(f.data(ctx, f.d2)).To(Equal("v=1"))
		f.create(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
		Expect(f.at(ctx, f.d1).UID).To(Equal(was.UID))
	})

	It("DIST-D46 once status.deletionPolicy is Orphan, no copy has an ownerReference; RD can be deleted, "+
		"and its copies stay", func(ctx SpecContext) {
		f.create(ctx)
		Expect(f.becomes(ctx, "True/Distributed").Status.DeletionPolicy).To(Equal(v1alpha1.DeletionDelete))
		Expect(f.edit(ctx, "admin", f.d1, setting("v", "edited"))).To(Succeed())
		f.change(ctx, onDeletion(v1alpha1.DeletionOrphan))
		Eventually(ctx, func() v1alpha1.DeletionPolicy { return f.read(ctx).Status.DeletionPolicy }).Should(Equal(v1alpha1.DeletionOrphan),
			f.explain)
		for _, namespace := range []string{f.d1, f.d2, f.d3} {
			Expect(f.at(ctx, namespace).OwnerReferences).To(BeEmpty())
		}
		Expect(f.data(ctx, f.d1)).To(Equal("v=edited"))
		f.remove(ctx)
		f.rests(ctx)
		Expect(f.data(ctx, f.d1)).To(Equal("v=edited"))
	})

	It("DIST-D47 `--cascade=orphan`: RD is deleted, and its copies stay", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		f.remove(ctx, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		Eventually(ctx, f.gone).WithArguments(f.object()).Should(BeTrue())
		f.rests(ctx)
		Expect(f.data(ctx, f.d1)).To(Equal("v=1"))
	})

	It("DIST-D47 `--cascade=foreground`: RD is deleted after its last copy, also if a finalizer holds that copy", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "admin", f.d1, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })).To(Succeed())
		f.remove(ctx, client.PropagationPolicy(metav1.DeletePropagationForeground))
		f.absent(ctx, f.d2, f.d3)
		held := f.at(ctx, f.d1)
		Expect(f.read(ctx).DeletionTimestamp).NotTo(BeNil(), "it waits for the copy in d1")
		f.LetGo(ctx, held)
		f.absent(ctx, f.d1)
		Eventually(ctx, f.gone).WithArguments(f.object()).Should(BeTrue())
	})

	It("DIST-D48 RD with 300 targets is deleted and at once created again: 300 copies get the new ownerReference, "+
		"and stay", func(ctx SpecContext) {
		names := f.namespaces(ctx, 300)
		to := targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)})
		f.create(ctx, to)
		f.becomes(ctx, "True/Distributed")
		f.remove(ctx)
		f.create(ctx, to)
		rd := f.becomes(ctx, "True/Distributed")
		owned := func() (n int) {
			GinkgoHelper()
			list := &corev1.SecretList{}
			Expect(f.Admin().List(ctx, list, client.MatchingFields{"metadata.name": f.id})).To(Succeed())
			for i := range list.Items {
				if metav1.IsControlledBy(&list.Items[i], rd) {
					n++
				}
			}
			return n
		}
		Eventually(ctx, owned).Should(Equal(300), f.explain)
		f.rests(ctx)
		Expect(owned()).To(Equal(300), "the garbage collector takes none")
	})

	It("DIST-D50 a copy with a tenant's finalizer outlives RD; created again, RD is in conflict there, BeingDeleted, "+
		"until the finalizer is removed; then it gets a copy", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "admin", f.d1, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })).To(Succeed())
		f.remove(ctx)
		f.absent(ctx, f.d2, f.d3)
		f.create(ctx)
		f.distributed(ctx, "v=1", f.d2, f.d3)
		Expect(conflicts(f.becomes(ctx, "False/Conflict"))).To(Equal([]string{f.d1 + ":BeingDeleted"}))
		held := f.at(ctx, f.d1)
		f.LetGo(ctx, held)
		f.distributed(ctx, "v=1", f.d1)
		f.becomes(ctx, "True/Distributed")
	})
})
