package informers_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

var _ = Describe("metadata", func() {
	// `make bench-informers` does the same with 10,000 of 50,000 Secrets.
	It("INF-I40 a Metadata lease with a label selector holds the labelled of many large Secrets alone, in at most 2 KiB each (`make "+
		"bench-informers`: 10,000 of 50,000)", func(ctx SpecContext) {
		const labelled, all = 400, 1200
		w := begin(40, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		plantLarge(ctx, a, labelled, all)
		lease := func(value string) *watchset.Lease {
			GinkgoHelper()
			r := in(a)
			r.LabelSelector = labels.SelectorFromSet(labels.Set{"held": value})
			l := w.lease(r)
			becomes(l, watchset.Synced)
			return l
		}
		Expect(lease("none").Status().Objects).To(BeZero())
		before := settledMemory()
		l := lease("yes")
		each := (settledMemory() - before) / labelled
		Expect(l.Status().Objects).To(Equal(labelled))
		Expect(l.List(a, nil)).To(And(HaveLen(labelled), HaveEach(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{}))))
		Expect(w.open(secrets.Resource, a)()).To(Equal(2))
		AddReportEntry("bytes per object", each)
		if os.Getenv("WARREN_RACE") != "1" { // the race detector needs memory of its own
			Expect(each).To(BeNumerically("<=", 2<<10), "bytes per object")
		}
	})
})

// plantLarge makes Secrets of 10 KiB, of which the first are labelled.
func plantLarge(ctx context.Context, namespace string, labelled, all int) {
	GinkgoHelper()
	content := bytes.Repeat([]byte("x"), 10<<10)
	makeMany(all, func(i int) error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("s", i)},
			Data: map[string][]byte{"key": content}}
		if i < labelled {
			s.Labels = map[string]string{"held": "yes"}
		}
		return admin.Create(ctx, s)
	})
}

// makeMany calls f for each of n numbers, eight at a time.
func makeMany(n int, f func(i int) error) {
	GinkgoHelper()
	var makers errgroup.Group
	makers.SetLimit(8)
	for i := range n {
		makers.Go(func() error { return f(i) })
	}
	Expect(makers.Wait()).To(Succeed())
}

// settledMemory is the memory in use after pools have been emptied, too, which takes two garbage collections.
func settledMemory() int {
	runtime.GC()
	return memory()
}
