package distribution_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var _ = Describe("many copies", func() {
	// make bench, B9, compares how long that takes with the time of a bare client.
	It("DIST-D72 cost one write each to create, update and delete, and one list", func(ctx SpecContext) {
		f := plough(ctx, world)
		const many = 60
		for i := range many - 3 {
			f.namespace(ctx, fmt.Sprintf("%s-n%02d", f.id, i), "dist", f.id)
		}
		current := func(ctx context.Context) int32 { return f.read(ctx).Status.Current }
		mark := f.mark(ctx)
		f.create(ctx)
		Eventually(ctx, current).Should(BeEquivalentTo(many), f.explain)
		f.becomes(ctx, "True/Distributed")
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.becomes(ctx, "True/Distributed")
		f.change(ctx,
			targeting(v1alpha1.DistributionTargets{NamespaceLabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"dist": "none-" +
				f.id}}}))
		f.becomes(ctx, "True/NoTargets")
		got := f.requests(ctx, mark)
		delete(got, "update resourcedistributions/status")
		Expect(got).To(Equal(map[string]int{"list secrets": 1, "create secrets": many, "update secrets": many, "delete secrets": many}),
			f.explain)
	})
})

var _ = Describe("what is too much", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D88 a ConfigMap of 1.4 MiB is refused everywhere, in a sentence", func(ctx SpecContext) {
		f.create(ctx, func(rd *v1alpha1.ResourceDistribution) {
			rd.Spec.Resource = raw(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": f.id},
				"data": map[string]string{"v": strings.Repeat("x", 1400<<10)}})
		})
		rd := f.ends(ctx, "False/Failed")
		Expect(rd.Status.Failed).To(BeEquivalentTo(3))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).To(And(
			ContainSubstring("the copy in 3 namespaces could not be written"), ContainSubstring("refuses it as invalid"),
			Not(ContainSubstring("xxxx"))))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("Rejected"))
	})

	It("DIST-D89 500 names that don't exist are counted, and the others are served", func(ctx SpecContext) {
		names := []string{f.d1}
		for i := range 499 {
			names = append(names, fmt.Sprintf("%s-ghost-%03d", f.id, i))
		}
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)}))
		rd := f.ends(ctx, "False/NamespaceNotFound")
		Expect(rd.Status.NotFound).To(HaveLen(20))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).To(And(
			ContainSubstring("499 namespaces"), ContainSubstring(f.id+"-ghost-000"), ContainSubstring("create them, or take the names out")))
		Expect(f.data(ctx, f.d1)).To(Equal("v=1"))
		Expect(rd.Status.Current).To(BeEquivalentTo(1))
		f.rests(ctx)
		tooMany := append(names, f.id+"-one-more")
		Expect(f.attempt(ctx, "admin", targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(tooMany...)}))).
			To(MatchError(ContainSubstring("must have at most 500 items")))
	})
})
