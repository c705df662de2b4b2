package guides_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

var _ = Describe("a tenant in Git, as kustomize-controller applies it", func() {
	It("ACC-T08 the guide's folders in one stage are refused three times, and nothing is written; in the two stages of flux.yaml, all is "+
		"applied", func(ctx SpecContext) {
		stages := stagesOfFlux()
		Expect(stages).To(HaveLen(2))
		Eventually(metadata("payments")).WithContext(ctx).Should(HaveKeyWithValue(v1alpha1.LabelType, v1alpha1.TypeRoot))

		By("all in one stage, which no repetition helps")
		for range 3 {
			Expect(applyStage(ctx, slices.Concat(stages...))).To(MatchError(ContainSubstring(`namespaces "pay-stage" not found`)))
		}
		sub := build.SubNamespace("payments", "pay-stage")
		Expect(client.IgnoreNotFound(world.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub))).To(Succeed())
		Expect(sub.UID).To(BeEmpty(), "nothing was written")

		By("in the stages of the guide")
		Expect(applyStage(ctx, stages[0])).To(Succeed())
		Eventually(func() (*metav1.Condition, error) { // wait: true
			err := world.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub)
			return v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady), err
		}).WithContext(ctx).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(applyStage(ctx, stages[1])).To(Succeed())
	})
})

// applyStage applies objects as kustomize-controller applies a stage: it writes the first object only if the API server accepts a dry run
// of each.
func applyStage(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, options := range [][]client.ApplyOption{{client.DryRunAll}, {}} {
		for _, object := range objects {
			options := append(options, client.FieldOwner("kustomize-controller"), client.ForceOwnership)
			if err := world.Admin().Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...); err != nil {
				return err
			}
		}
	}
	return nil
}

// stagesOfFlux returns the objects in the folders of the guide's Kustomizations, in the order in which these depend on each other.
func stagesOfFlux() (stages [][]*unstructured.Unstructured) {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	folder, last := filepath.Join(root, "docs/guides/gitops"), ""
	for _, k := range objectsIn(filepath.Join(folder, "flux.yaml")) {
		depends, _, _ := unstructured.NestedSlice(k.Object, "spec", "dependsOn")
		if last != "" {
			Expect(depends).To(ConsistOf(HaveKeyWithValue("name", last)))
		}
		waits, _, _ := unstructured.NestedBool(k.Object, "spec", "wait")
		Expect(waits).To(BeTrue(), k.GetName())
		path, _, _ := unstructured.NestedString(k.Object, "spec", "path")
		files, err := filepath.Glob(filepath.Join(folder, path, "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var objects []*unstructured.Unstructured
		for _, file := range files {
			objects = append(objects, objectsIn(file)...)
		}
		stages, last = append(stages, objects), k.GetName()
	}
	return stages
}

func objectsIn(path string) (objects []*unstructured.Unstructured) {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if decoder.Decode(object) != nil {
			return objects
		}
		objects = append(objects, object)
	}
}
