package budget_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// claim returns a PersistentVolumeClaim of so much storage.
func claim(namespace, storage string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "c-"}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(storage)}
	return c
}

// tries is what came of many creations.
type tries struct {
	refused []error
	took    []time.Duration
	raised  float64 // how many waited until the share was raised
}

// try creates n objects with clients at once, and tries each of them once.
func (f *fixture) try(ctx context.Context, n, clients int, build func(i int) client.Object) tries {
	GinkgoHelper()
	var mu sync.Mutex
	var group sync.WaitGroup
	before := f.countRooms(ctx)
	result, next := tries{}, make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range clients {
		group.Go(func() {
			for i := range next {
				start := time.Now()
				err := f.Admin().Create(ctx, build(i))
				took := time.Since(start)
				mu.Lock()
				if result.took = append(result.took, took); err != nil {
					result.refused = append(result.refused, err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(result.took)
	at := func(part float64) time.Duration { return result.took[int(part*float64(n-1))].Round(time.Millisecond) }
	result.raised = f.countRooms(ctx) - before
	AddReportEntry("tries", fmt.Sprintf("%d of %d refused with %d clients, %.0f raised, p50 %s, p95 %s, most %s", len(result.refused), n, clients,
		result.raised, at(0.5), at(0.95), at(1)), ReportEntryVisibilityAlways)
	return result
}

// countRooms returns how many creations have waited for room, and got it.
func (f *fixture) countRooms(ctx context.Context) float64 {
	GinkgoHelper()
	metrics, err := f.Operator.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	return metrics.Value("warren_budget_rooms_total", map[string]string{"result": "raised"})
}

// awaitMark waits until webhook room is asked about namespaces.
func (f *fixture) awaitMark(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	for _, name := range namespaces {
		Eventually(ctx, func() map[string]string {
			n := &corev1.Namespace{}
			Expect(f.Admin().Get(ctx, client.ObjectKey{Name: name}, n)).To(Succeed())
			return n.Labels
		}).Should(HaveKeyWithValue(v1alpha1.LabelShare, v1alpha1.True))
	}
	time.Sleep(time.Second) // an API server learns of the label a moment later
}

var _ = Describe("room before the request", func() {
	It("QUOTA-80 who creates claims one after the other, far beyond the share, has each admitted at the first try", func(ctx SpecContext) {
		f := plant(ctx, world, amounts("persistentvolumeclaims", "120"))
		f.awaitMark(ctx, f.web)
		result := f.try(ctx, 100, 1, func(int) client.Object { return claim(f.web, "1Gi") })
		Expect(len(result.refused)).To(BeNumerically("<=", 1), "%v", result.refused)
	})

	It("QUOTA-81 of 200 claims by 16 clients at once, nearly all are admitted at the first try", func(ctx SpecContext) {
		f := plant(ctx, world, amounts("persistentvolumeclaims", "240"))
		f.awaitMark(ctx, f.web)
		result := f.try(ctx, 200, 16, func(int) client.Object { return claim(f.web, "1Gi") })
		Expect(len(result.refused)).To(BeNumerically("<=", 10), "%v", result.refused[:min(5, len(result.refused))])
	})
})
