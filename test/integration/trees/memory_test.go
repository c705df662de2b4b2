package trees_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/devcluster"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("the operator's memory", func() {
	It("SEC-X31 holds no annotations that users hang on SubNamespaces", func(ctx SpecContext) {
		const count, size, most = 100, 250_000, 10_000_000
		w, err := devcluster.Start(ctx, devcluster.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		heap := func() float64 {
			metrics, err := w.Operator.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			return metrics.Value("go_memstats_heap_alloc_bytes", nil)
		}
		// Below what is in no tree they wait, and only their objects cost memory.
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
		Eventually(heap).WithContext(ctx).Should(BeNumerically("<", before+most), "of %d bytes that were sent", count*size)
		for i := range subs.Items {
			Expect(subs.Items[i].Annotations).To(HaveKeyWithValue("example.com/ballast", HaveLen(size)), "what the operator writes takes nothing away")
		}
	})
})
