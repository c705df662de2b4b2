package distribution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var _ = Describe("many copies", func() {
	// make bench, B9, compares how long that takes with the time of a bare client.
	It("DIST-D72 60 copies cost one list, and one write each to create, update and delete; `make bench ARGS=\"-only B9 -children 1000\"` "+
		"measures the time", func(ctx SpecContext) {
		f := plough(ctx, world)
		const many = 60
		for i := range many - 3 {
			f.namespace(ctx, fmt.Sprintf("%s-n%02d", f.id, i), "dist", f.id)
		}
		f.seen(ctx, fmt.Sprintf("%s-n%02d", f.id, many-4)) // the last one
		current := func(ctx context.Context) int32 { return f.read(ctx).Status.Current }
		mark := f.Mark(ctx)
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

// configMap is a change to a ConfigMap with these data.
func (f *field) configMap(data map[string]string) change {
	return func(rd *v1alpha1.ResourceDistribution) {
		rd.Spec.Resource = raw(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": f.id}, "data": data})
	}
}

// managed are the fields below f:spec that the managed fields of an object have for spec.resource, one for each entry with a spec.
func managed(rd *v1alpha1.ResourceDistribution) (resources []string) {
	GinkgoHelper()
	for _, entry := range rd.ManagedFields {
		var fields struct {
			Spec struct {
				Resource json.RawMessage `json:"f:resource"`
			} `json:"f:spec"`
		}
		Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(Succeed())
		if fields.Spec.Resource != nil {
			resources = append(resources, string(fields.Spec.Resource))
		}
	}
	return resources
}

var _ = Describe("what is large", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	It("DIST-D54 a Secret with 1,048,576 bytes of data is copied; RD's managedFields have one entry for spec.resource, "+
		"and its status can be written", func(ctx SpecContext) {
		f.create(ctx, f.holding(map[string]string{"v": strings.Repeat("x", 1<<20)}))
		rd := f.becomes(ctx, "True/Distributed") // so the API server has accepted the operator's writes of the status
		Expect(rd.Status.Current).To(BeEquivalentTo(3))
		Expect(f.at(ctx, f.d1).Data["v"]).To(HaveLen(1 << 20))
		Expect(managed(rd)).To(Equal([]string{"{}"}))
		f.writeStatus(ctx, func(s *v1alpha1.ResourceDistributionStatus) { s.Targets = 7 })
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Targets }).Should(BeEquivalentTo(3), f.explain)
	})

	It("DIST-D54 a ConfigMap with 20,000 keys is copied; RD's managedFields have one entry for spec.resource, "+
		"and its status can be written", func(ctx SpecContext) {
		data := map[string]string{}
		for i := range 20_000 {
			data[fmt.Sprintf("key-%05d", i)] = "x"
		}
		f.create(ctx, f.configMap(data))
		rd := f.becomes(ctx, "True/Distributed")
		Expect(rd.Status.Current).To(BeEquivalentTo(3))
		for _, namespace := range []string{f.d1, f.d2, f.d3} {
			found := &corev1.ConfigMap{}
			Expect(f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: f.id}, found)).To(Succeed())
			Expect(found.Data).To(Equal(data))
		}
		Expect(managed(rd)).To(Equal([]string{"{}"}), "no entry for each key")
		f.writeStatus(ctx, func(s *v1alpha1.ResourceDistributionStatus) { s.Targets = 7 })
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Targets }).Should(BeEquivalentTo(3), f.explain)
	})

	It("DIST-D88 the API server refuses copies of a ConfigMap of 1.4 MiB: failed 3, Stalled Rejected; Ready's message has none of its "+
		"data", func(ctx SpecContext) {
		f.create(ctx, f.configMap(map[string]string{"v": strings.Repeat("x", 1400<<10)}))
		rd := f.ends(ctx, "False/Failed")
		Expect(rd.Status.Failed).To(BeEquivalentTo(3))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).To(And(
			ContainSubstring("the copy in 3 namespaces could not be written"), ContainSubstring("refuses it as invalid"),
			Not(ContainSubstring("xxxx"))))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("Rejected"))
	})

	It("DIST-D89 with d1 and 499 missing names in included, d1 gets its copy, the status lists 20 names, and the message counts 499; "+
		"501 names are refused", func(ctx SpecContext) {
		names := []string{f.d1}
		for i := range 499 {
			names = append(names, fmt.Sprintf("%s-ghost-%03d", f.id, i))
		}
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)}))
		rd := f.ends(ctx, "False/NamespaceNotFound")
		Expect(rd.Status.NotFound).To(HaveLen(20))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).To(And(
			ContainSubstring("499 namespaces"), ContainSubstring(f.id+"-ghost-000"), ContainSubstring("create each, or take its name out")))
		Expect(f.data(ctx, f.d1)).To(Equal("v=1"))
		Expect(rd.Status.Current).To(BeEquivalentTo(1))
		f.rests(ctx)
		tooMany := append(names, f.id+"-one-more")
		Expect(f.attempt(ctx, "admin", targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(tooMany...)}))).
			To(MatchError(ContainSubstring("must have at most 500 items")))
	})
})
