package distribution_test

import (
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

func references(names ...string) []v1alpha1.NamespaceReference {
	var all []v1alpha1.NamespaceReference
	for _, name := range names {
		all = append(all, v1alpha1.NamespaceReference{Name: v1alpha1.NamespaceName(name)})
	}
	return all
}

var _ = Describe("targets", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D01 each target gets a copy with label, source-hash and ownerReference; Ready is True/Distributed, targets and current are 3; "+
		"DIST-D02 the copies cost one list of Secrets, no GET, one POST each, and at most 3 writes of the status", func(ctx SpecContext) {
		f.seen(ctx, f.d1, f.d2, f.d3)
		mark, begin := f.Mark(ctx), time.Now()
		f.create(ctx)
		rd := f.becomes(ctx, "True/Distributed")
		pauses := int(time.Since(begin) / (2 * time.Second)) // between two statuses of a long rollout: 0, except on a busy machine
		Expect([]int32{rd.Status.Targets, rd.Status.Current}).To(Equal([]int32{3, 3}))
		for _, namespace := range []string{f.d1, f.d2, f.d3} {
			s := f.at(ctx, namespace)
			Expect(s).NotTo(BeNil())
			Expect(s.Labels).To(Equal(map[string]string{"app": "pull", v1alpha1.LabelDistributedBy: f.id}))
			Expect(s.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSourceHash, HaveSuffix(":"+rd.Status.ResourceHash)))
			Expect(metav1.IsControlledBy(s, rd)).To(BeTrue())
			Expect(s.Data).To(HaveKeyWithValue("v", []byte("1")))
		}
		got := f.requests(ctx, mark)
		Expect(got["update resourcedistributions/status"]).To(BeNumerically("<=", 3+pauses))
		delete(got, "update resourcedistributions/status")
		Expect(got).To(Equal(map[string]int{"create secrets": 3, "list secrets": 1}), f.explain)
	})

	It("DIST-D05 the selector with excluded [d2] gives copies to d1 and d3; with included [d1] as well, to d1 alone", func(ctx SpecContext) {
		targets := f.selecting()
		targets.ExcludedNamespaces = references(f.d2)
		f.create(ctx, targeting(targets))
		f.distributed(ctx, "v=1", f.d1, f.d3)
		f.becomes(ctx, "True/Distributed")
		Expect(f.at(ctx, f.d2)).To(BeNil())
		targets.IncludedNamespaces = references(f.d1)
		f.change(ctx, targeting(targets))
		f.absent(ctx, f.d3)
		Expect(f.at(ctx, f.d1)).NotTo(BeNil())
	})

	It("DIST-D06 the selector and included [d1, x1] have one target, because x1 does not match the selector", func(ctx SpecContext) {
		targets := f.selecting()
		targets.IncludedNamespaces = references(f.d1, f.x1)
		f.create(ctx, targeting(targets))
		Expect(f.becomes(ctx, "True/Distributed").Status.Targets).To(BeEquivalentTo(1))
	})

	It("DIST-D07 trees [pay] gives copies to the root and all namespaces below, also to a later SubNamespace; "+
		"DIST-D08 with trees and a selector, only the namespace of the tree that matches has a copy", func(ctx SpecContext) {
		root, a, b, c := f.id+"-pay", f.id+"-pay-a", f.id+"-pay-b", f.id+"-pay-c"
		Expect(f.Admin().Create(ctx, build.Tenant(root).Object())).To(Succeed())
		sub := func(parent, name string) {
			Eventually(ctx, func() error {
				return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.SubNamespace(parent, name)))
			}).Should(Succeed())
			Eventually(ctx, func() error {
				return f.Admin().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			}).Should(Succeed())
		}
		Eventually(ctx, func() error { return f.Admin().Get(ctx, client.ObjectKey{Name: root}, &corev1.Namespace{}) }).Should(Succeed())
		sub(root, a)
		sub(a, b)
		f.create(ctx, targeting(v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{v1alpha1.NamespaceName(root)}}))
		f.distributed(ctx, "v=1", root, a, b)
		sub(b, c)
		f.distributed(ctx, "v=1", c)
		f.change(ctx, targeting(v1alpha1.DistributionTargets{
			Trees:                  []v1alpha1.NamespaceName{v1alpha1.NamespaceName(root)},
			NamespaceLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b}},
		}))
		f.absent(ctx, root, a, c)
		Expect(f.at(ctx, b)).NotTo(BeNil())
	})

	It("DIST-D07 the copies in a namespace that is moved out of the tree, and below it, are deleted", func(ctx SpecContext) {
		root, other, a, b := f.id+"-pay", f.id+"-other", f.id+"-pay-a", f.id+"-pay-b"
		for _, n := range []*corev1.Namespace{build.Root(root), build.Root(other), build.Child(a, root), build.Child(b, a)} {
			Expect(f.Admin().Create(ctx, n)).To(Succeed())
		}
		f.create(ctx, targeting(v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{v1alpha1.NamespaceName(root)}}))
		f.distributed(ctx, "v=1", root, a, b)
		Expect(f.Admin().Patch(ctx, build.Namespace(a), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"`+v1alpha1.LabelParent+`":"`+other+`"}}}`)))).To(Succeed())
		f.absent(ctx, a, b)
		// reported after the copies are deleted
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Targets }).Should(BeEquivalentTo(1), f.explain)
		f.becomes(ctx, "True/Distributed")
		Expect(f.data(ctx, root)).To(Equal("v=1"))
	})

	It("DIST-D10 of included [d1, ghost] d1 gets its copy; Ready is False/NamespaceNotFound, and notFound names ghost, "+
		"until ghost exists and gets its copy", func(ctx SpecContext) {
		ghost := f.id + "-ghost"
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(f.d1, ghost)}))
		rd := f.ends(ctx, "False/NamespaceNotFound")
		Expect(rd.Status.NotFound).To(Equal([]string{ghost}))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("NamespaceNotFound"))
		Expect(f.data(ctx, f.d1)).To(Equal("v=1"))
		f.namespace(ctx, ghost)
		f.distributed(ctx, "v=1", ghost)
		Expect(f.becomes(ctx, "True/Distributed").Status.NotFound).To(BeEmpty())
	})

	It("DIST-D11 a selector that matches no namespace gives Ready True/NoTargets and targets 0", func(ctx SpecContext) {
		f.create(ctx,
			targeting(v1alpha1.DistributionTargets{NamespaceLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"dist": "none-" +
				f.id}}}))
		Expect(f.becomes(ctx, "True/NoTargets").Status.Targets).To(BeZero())
	})

	It("DIST-D12 a namespace that begins to match, new or by its label, costs one POST; one that ceases to match costs one "+
		"DELETE", func(ctx SpecContext) {
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		mark := f.Mark(ctx)
		label := func(namespace, value string) {
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			Expect(f.Admin().Patch(ctx, n, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"dist":"`+value+`"}}}`)))).
				To(Succeed())
		}
		f.namespace(ctx, f.id+"-d4", "dist", f.id)
		f.distributed(ctx, "v=1", f.id+"-d4")
		label(f.x1, f.id)
		f.distributed(ctx, "v=1", f.x1)
		label(f.d3, "")
		f.absent(ctx, f.d3)
		label(f.d2, "other")
		f.absent(ctx, f.d2)
		Eventually(ctx, f.says).Should(Equal("True/Distributed"))
		got := f.requests(ctx, mark)
		maps.DeleteFunc(got, func(what string, _ int) bool { return what == "update resourcedistributions/status" })
		Expect(got).To(Equal(map[string]int{"create secrets": 2, "delete secrets": 2}))
	})

	It("DIST-D13 when d2 is deleted, targets is 2, without failure or Event Failed; created again, d2 gets a new copy", func(ctx SpecContext) {
		f.create(ctx)
		rd := f.becomes(ctx, "True/Distributed")
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.d2}}
		Expect(f.Admin().Delete(ctx, n)).To(Succeed())
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Targets }).Should(BeEquivalentTo(2), f.explain)
		Eventually(ctx, func() error { return f.Admin().Create(ctx, build.Namespace(f.d2, "dist", f.id)) }).Should(Succeed())
		f.distributed(ctx, "v=1", f.d2)
		Expect(f.becomes(ctx, "True/Distributed").Status.Failed).To(BeZero())
		Expect(f.Messages(rd, v1alpha1.ReasonFailed)(ctx)).To(BeEmpty())
	})

	It("DIST-D14 while a finalizer keeps d2 terminating, targets is 2 and Ready is True, also after the data change", func(ctx SpecContext) {
		holder := build.Secret(f.d2, "holder", "1")
		holder.Finalizers = []string{"example.com/hold"}
		Expect(f.Admin().Create(ctx, holder)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			f.LetGo(ctx, holder)
		})
		Expect(f.Admin().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.d2}})).To(Succeed())
		f.create(ctx)
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Targets }).Should(BeEquivalentTo(2))
		f.becomes(ctx, "True/Distributed")
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1, f.d3)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D35 a child gets no copy of the copy in a root, also if that copy gets label `propagate`", func(ctx SpecContext) {
		root, child := f.id+"-root", f.id+"-child"
		Expect(f.Admin().Create(ctx, build.Tenant(root).Object())).To(Succeed())
		Eventually(ctx, func() error {
			return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.SubNamespace(root, child)))
		}).Should(Succeed())
		Eventually(ctx, func() error { return f.Admin().Get(ctx, client.ObjectKey{Name: child}, &corev1.Namespace{}) }).Should(Succeed())
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(root)}))
		f.distributed(ctx, "v=1", root)
		Expect(f.edit(ctx, "admin", root, func(s *corev1.Secret) { s.Labels[v1alpha1.LabelPropagate] = v1alpha1.ModeUpdate })).To(Succeed())
		Consistently(ctx, f.data).WithArguments(child).WithTimeout(test.Quiet(soon)).Should(BeEmpty())
	})
})
