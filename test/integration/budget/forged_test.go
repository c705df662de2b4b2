package budget_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// refusalOf is the message of the API server for what needs so much.
func refusalOf(requested string) string {
	return "exceeded quota: hrq.tenancy.warren.dev, requested: " + requested + ", used: pods=0, limited: pods=0"
}

var _ = Describe("forged requests", func() {
	It("QUOTA-121 after Events with amounts of 1e1000000000, in a namespace with a share and in one without, a sibling gets all room; "+
		"QUOTA-122 a HierarchicalResourceQuota and an LNamespace with such an amount are refused", func(ctx SpecContext) {
		f := plant(ctx, world, pods(20))
		for _, text := range []string{"1e1000000000", "1e-1000000000", "12345678901234567890e1000000000"} {
			f.refuse(ctx, f.Admin(), f.web, refusalOf("pods="+text))
			f.refuse(ctx, f.Admin(), "default", refusalOf("pods="+text))
			for key, kind := range map[string]string{"memory": "HierarchicalResourceQuota", "pods": "HierarchicalResourceQuota",
				"requests.storage": "LNamespace"} {
				vast := &unstructured.Unstructured{}
				vast.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
				vast.SetName(f.root + "-vast")
				hard := []string{"spec", "hard"}
				if kind == "LNamespace" {
					hard = []string{"spec", "limits", "hard"}
				} else {
					vast.SetNamespace(f.web)
				}
				Expect(unstructured.SetNestedStringMap(vast.Object, map[string]string{key: text}, hard...)).To(Succeed())
				Expect(f.Admin().Create(ctx, vast)).To(MatchError(ContainSubstring("exponent of")), "%s %s", kind, text)
			}
		}
		f.fill(ctx, 20, f.db)
	})

	It("QUOTA-123 while forged reviews come without end, some with a million entries, a sibling gets all room, and the operator stays small",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(20))
			f.awaitMark(ctx, f.web, f.db)
			review := func(containers string) string {
				return `{"request":{"uid":"1","namespace":"` + f.web + `","resource":{"resource":"pods"},"object":{"spec":{"containers":[` +
					containers + `]}}}}`
			}
			forging, stop := context.WithCancel(ctx)
			var group sync.WaitGroup
			defer group.Wait()
			defer stop()
			for range 4 {
				group.Go(func() {
					defer GinkgoRecover()
					for n := 0; forging.Err() == nil; n++ {
						containers := ""
						if n%50 == 0 {
							containers = strings.Repeat("{},", 1_000_000) + "{}"
						}
						f.sendReview(ctx, review(containers))
						time.Sleep(20 * time.Millisecond)
					}
				})
			}
			time.Sleep(3 * time.Second)
			start := time.Now()
			f.fill(ctx, 20, f.db)
			metrics, err := f.Operator.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			size := metrics.Value("process_resident_memory_bytes", nil)
			AddReportEntry("forged", fmt.Sprintf("20 pods after %s, %.0f MB", time.Since(start), size/1e6), ReportEntryVisibilityAlways)
			Expect(size).To(BeNumerically("<", 500e6))
		})

	It("QUOTA-124 while Events ask for all claims of a tree in one namespace, another gets the storage that it needs for one large claim", func(
		ctx SpecContext) {
		f := plant(ctx, world, amounts("requests.storage", "4000Gi"))
		forging, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() {
			defer GinkgoRecover()
			for ; forging.Err() == nil; time.Sleep(time.Second) {
				f.refuse(ctx, f.Admin(), f.web, refusalOf("requests.storage=4000Gi"))
			}
		})
		time.Sleep(2 * time.Second)
		start := time.Now()
		Eventually(ctx, func() error {
			f.refuse(ctx, f.Admin(), f.db, refusalOf("requests.storage=3900Gi"))
			return f.Admin().Create(ctx, claim(f.db, "3900Gi"))
		}).WithTimeout(20 * time.Second).WithPolling(time.Second).Should(Succeed())
		AddReportEntry("forged", fmt.Sprintf("a claim after %s", time.Since(start)), ReportEntryVisibilityAlways)
	})
})
