package trees_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// collectionTime is a minute longer than Go's runtime goes without a garbage collection: an operator at rest has no other reason to begin
// one.
const collectionTime = 3 * time.Minute

// skipWithRaceDetector skips a case that measures memory, because the race detector takes memory of its own.
func skipWithRaceDetector() {
	GinkgoHelper()
	if os.Getenv("WARREN_RACE") == "1" {
		Skip("the race detector takes memory of its own")
	}
}

// bend replaces the schema of spec.annotations in the CRD of SubNamespaces by schema, and returns the old one. nil stands for a schema by
// which the values are texts, and no more.
func bend(ctx context.Context, w *devcluster.World, schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	GinkgoHelper()
	if schema == nil {
		schema = &apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
			Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}}
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(w.Admin().Get(ctx, client.ObjectKey{Name: "subnamespaces." + v1alpha1.Domain}, definition)).To(Succeed())
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	before := spec.Properties["annotations"]
	spec.Properties["annotations"] = *schema
	Expect(w.Admin().Update(ctx, definition)).To(Succeed())
	return &before
}

var _ = Describe("the operator's memory", func() {
	It("SEC-X31 100 SubNamespaces, each with 250 kB of annotations in metadata, let the operator's heap grow by "+
		"less than 10 MB", func(ctx SpecContext) {
		const count, size, most = 100, 250_000, 10_000_000
		skipWithRaceDetector()
		w, err := devcluster.Start(ctx, devcluster.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		heap := func() float64 {
			metrics, err := w.Operator.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			return metrics.Value("go_memstats_heap_alloc_bytes", nil)
		}
		// In a namespace outside all trees, SubNamespaces wait, and only their objects cost memory.
		Expect(w.Admin().Create(ctx, build.Namespace("attic"))).To(Succeed())
		before := heap()
		for i := range count {
			sub := build.SubNamespace("attic", fmt.Sprintf("box-%d", i))
			sub.Annotations = map[string]string{"example.com/ballast": strings.Repeat("x", size)}
			Expect(w.Admin().Create(ctx, sub)).To(Succeed())
		}
		subs := &v1alpha1.SubNamespaceList{}
		Eventually(func(g Gomega) {
			g.Expect(w.Admin().List(ctx, subs, client.InNamespace("attic"))).To(Succeed())
			g.Expect(subs.Items).To(HaveLen(count))
			g.Expect(subs.Items).To(HaveEach(HaveField("Status.Conditions", Not(BeEmpty()))), "the operator has looked at each")
		}).WithContext(ctx).Should(Succeed())
		Eventually(heap).WithContext(ctx).WithTimeout(collectionTime).WithPolling(5*time.Second).Should(BeNumerically("<", before+most),
			"of %d bytes that were sent", count*size)
		for i := range subs.Items {
			Expect(subs.Items[i].Annotations).To(HaveKeyWithValue("example.com/ballast", HaveLen(size)),
				"what the operator writes takes nothing away")
		}
	})

	It("SEC-X33 300 SubNamespaces with as many annotations in spec as allowed let the heap grow by less than 15 MB; one character more "+
		"is refused, `at most 8192 characters together`; SEC-X33 on an older SubNamespace with 250 kB of them, the operator writes the "+
		"status, a user may change a label, but no annotation in spec", func(ctx SpecContext) {
		const count, most = 300, 15_000_000
		skipWithRaceDetector()
		w, err := devcluster.Start(ctx,
			devcluster.Options{Operator: devcluster.OperatorOptions{Config: `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
subNamespaces: {annotations: ["example.com/*"]}
`}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		noted := func(name string, size int) *v1alpha1.SubNamespace {
			sub := build.SubNamespace("attic", name)
			sub.Spec.Annotations = map[string]v1alpha1.AnnotationValue{}
			for i := 0; size > 0; i++ {
				key := fmt.Sprintf("example.com/note-%d", i)
				value := min(size-len(key), 4000)
				sub.Spec.Annotations[key] = v1alpha1.AnnotationValue(strings.Repeat("x", value))
				size -= len(key) + value
			}
			return sub
		}
		tooLong := MatchError(And(ContainSubstring("spec.annotations"), ContainSubstring("at most 8192 characters together")))
		Expect(w.Admin().Create(ctx, build.Namespace("attic"))).To(Succeed())

		// A SubNamespace of an older version, which had no such rule, keeps its annotations, and still works.
		rules := bend(ctx, w, nil)
		Eventually(func() error { return w.Admin().Create(ctx, noted("old", 250_000)) }).WithContext(ctx).Should(Succeed())
		bend(ctx, w, rules)
		Eventually(func() error { return w.Admin().Create(ctx, noted("probe", 250_000), client.DryRunAll) }).WithContext(ctx).Should(tooLong)
		old := noted("old", 250_000)
		patch := func(text string) error {
			return w.Admin().Patch(ctx, old, client.RawPatch(types.MergePatchType, []byte(text)))
		}
		Expect(patch(`{"metadata":{"labels":{"a":"b"}},"spec":{"labels":{"team":"neco"}}}`)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(old), old)).To(Succeed())
			g.Expect(old.Status.ObservedGeneration).To(Equal(old.Generation), "the operator reports")
		}).WithContext(ctx).Should(Succeed())
		Expect(patch(`{"spec":{"annotations":{"example.com/note-0":"y"}}}`)).To(tooLong)
		Expect(w.Admin().Delete(ctx, old)).To(Succeed())

		heap := func() float64 {
			metrics, err := w.Operator.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			return metrics.Value("go_memstats_heap_alloc_bytes", nil)
		}
		before := heap()
		for i := range count {
			name := fmt.Sprintf("box-%d", i)
			Expect(w.Admin().Create(ctx, noted(name, 8193), client.DryRunAll)).To(tooLong)
			Expect(w.Admin().Create(ctx, noted(name, 8192))).To(Succeed())
		}
		subs := &v1alpha1.SubNamespaceList{}
		Eventually(func(g Gomega) {
			g.Expect(w.Admin().List(ctx, subs, client.InNamespace("attic"))).To(Succeed())
			g.Expect(subs.Items).To(HaveLen(count))
			g.Expect(subs.Items).To(HaveEach(HaveField("Status.Conditions", Not(BeEmpty()))), "the operator has looked at each")
		}).WithContext(ctx).Should(Succeed())
		Eventually(heap).WithContext(ctx).WithTimeout(collectionTime).WithPolling(5 * time.Second).Should(BeNumerically("<", before+most))
	})
})
