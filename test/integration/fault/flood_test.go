package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// inParallel does something n times, some of them at once.
func inParallel(n int, do func(i int)) {
	var all errgroup.Group
	all.SetLimit(12)
	for i := range n {
		all.Go(func() error {
			defer GinkgoRecover()
			do(i)
			return nil
		})
	}
	_ = all.Wait()
}

// full is a quota that allows no Secrets in a namespace.
func full(namespace string) *corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "full"}}
	quota.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("0")}
	return quota
}

// crowd is a root with many children that are full, and a slow API server for the writes of copies there.
type crowd struct {
	*scene
	size int

	mu    sync.Mutex      // guards tried
	tried map[string]bool // paths of POSTs
}

func (c *crowd) child(i int) string { return c.own(fmt.Sprint("n", i)) }

// gather makes the crowd, and waits until all its quotas are in force.
func (c *crowd) gather(ctx context.Context) {
	GinkgoHelper()
	c.create(ctx, build.Root(c.own("payments")))
	inParallel(c.size, func(i int) { c.create(ctx, build.Child(c.child(i), c.own("payments")), full(c.child(i))) })
	Eventually(ctx, func(g Gomega) {
		quotas := &corev1.ResourceQuotaList{}
		g.Expect(c.Admin().List(ctx, quotas)).To(Succeed())
		inForce := 0
		for _, quota := range quotas.Items {
			inForce += len(quota.Status.Hard)
		}
		g.Expect(inForce).To(Equal(c.size))
	}).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(Succeed())
	c.tried = map[string]bool{}
	// The operator writes 16 copies at once, as the configuration says. With this delay, all of them take 40 s: longer than
	// a stranger's story on a busy machine.
	delay := 16 * 40 * time.Second / time.Duration(c.size)
	c.scripts.set(c.key, func(q gate.Request) (gate.Fault, bool) {
		if q.Method != http.MethodPost || !strings.HasSuffix(q.URL.Path, "/secrets") {
			return gate.Fault{}, false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tried[q.URL.Path] = true
		return gate.Fault{Delay: delay}, true
	})
}

// refused counts the namespaces for which the operator has sent the copy at least once.
func (c *crowd) refused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tried)
}

// served counts the namespaces that have the copy.
func (c *crowd) served(ctx context.Context) (int, error) {
	copies := &metav1.PartialObjectMetadataList{}
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := c.Admin().List(ctx, copies, client.MatchingLabels{v1alpha1.LabelInheritedFrom: c.own("payments")})
	return len(copies.Items), err
}

// stranger is the story FLT-S1 of an unrelated tenant, which also gets a copy.
func stranger(ctx context.Context, s *scene) {
	GinkgoHelper()
	s.withoutClaims = true
	tenant(ctx, s)
	s.create(ctx, build.SubNamespace(s.own("payments"), s.own("web")), s.source("s", "1"))
	s.copied(ctx, "web", "s", "1")
}

// edits patches one object n times, with what patch returns for 1 to n.
func edits(ctx context.Context, s *stage, object client.Object, n int, patch func(i int) string) {
	GinkgoHelper()
	for i := 1; i <= n; i++ {
		Eventually(ctx, func() error {
			return s.Admin().Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch(i))))
		}).Should(Succeed())
	}
}

// deepest looks at the queues of the operator until the returned function is called, which returns the most that one of them has held.
func (s *stage) deepest(ctx context.Context) (stop func() float64) {
	ctx, cancel := context.WithCancel(ctx)
	var most float64
	var looking sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			metrics, err := s.Operator.Metrics(ctx)
			for _, queue := range metrics["workqueue_depth"].GetMetric() {
				if err == nil {
					most = max(most, queue.GetGauge().GetValue())
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() float64 {
		cancel()
		looking.Wait()
		return most
	}
}

var _ = Describe("an operator that is flooded", Ordered, ContinueOnFailure, func() {
	var st *stage

	BeforeAll(func(ctx SpecContext) {
		st = bareStage(ctx, withConfiguration)
		st.StartOperatorWith(ctx, st.World, withConfiguration.Operator)
	})

	It("FLT-F42 after 20,000 events and 10,000 edits (`make test-long`; else 1,000 and 500), the last ones take effect; each object waits "+
		"once in a queue; memory is at most 1 GiB", func(ctx SpecContext) {
		s := st.scene("f42")
		const namespaces, tenants = 50, 20
		events, changes := test.Many(20_000, 1_000), test.Many(10_000, 500)
		place := func(i int) *corev1.Namespace { return build.Namespace(s.own(fmt.Sprint("p", i))) }
		lns := func(i int) *build.LNamespace { return build.Tenant(s.own(fmt.Sprint("t", i))).Users("first") }
		s.create(ctx, build.Root(s.own("payments")), s.source("s", "1"))
		inParallel(namespaces, func(i int) { s.create(ctx, place(i)) })
		inParallel(tenants, func(i int) { s.create(ctx, lns(i).Object()) })
		inParallel(tenants, func(i int) { s.exist(ctx, build.RoleBinding(s.own(fmt.Sprint("t", i)), "warren:users", "")) })

		deepest := st.deepest(ctx)
		var flood sync.WaitGroup
		flood.Go(func() {
			defer GinkgoRecover()
			inParallel(namespaces, func(i int) {
				edits(ctx, st, place(i), events/namespaces, func(n int) string {
					if n == events/namespaces {
						return fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelParent, s.own("payments"))
					}
					return fmt.Sprintf(`{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, n)
				})
			})
		})
		flood.Go(func() {
			defer GinkgoRecover()
			inParallel(tenants, func(i int) {
				edits(ctx, st, lns(i).Object(), changes/tenants, func(n int) string {
					return fmt.Sprintf(`{"spec":{"users":[{"kind":"User","name":"user%d"}]}}`, n)
				})
			})
		})
		flood.Wait()
		last := fmt.Sprint("user", changes/tenants)
		for i := range namespaces {
			s.copied(ctx, fmt.Sprint("p", i), "s", "1")
		}
		for i := range tenants {
			Eventually(ctx, func(g Gomega) {
				binding, tenant := build.RoleBinding(s.own(fmt.Sprint("t", i)), "warren:users", ""), lns(i).Object()
				g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
				g.Expect(namesOf(binding.Subjects)).To(ConsistOf(last))
				g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(tenant), tenant)).To(Succeed())
				ready := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
				g.Expect(ready).NotTo(BeNil())
				g.Expect(ready.Status).To(Equal(metav1.ConditionTrue), ready.Message)
				g.Expect(ready.ObservedGeneration).To(Equal(tenant.Generation))
			}).Should(Succeed(), s.explain)
		}
		const objects = namespaces + 2*tenants + 10 // Namespaces and LNamespaces of the cluster
		most, memory := deepest(), peakOf(st.Operator.Process().PID())
		AddReportEntry("FLT-F42", fmt.Sprintf("%d events, %d edits: %d KiB at most, a queue of %.0f at most", events, changes, memory, most))
		Expect(most).To(BeNumerically("<=", objects), "an object waits once in a queue, however often it changes")
		Expect(memory).To(And(BeNumerically(">", 0), BeNumerically("<=", 1<<20)), "KiB")
	}, SpecTimeout(30*time.Minute))

	It("FLT-F46 while 5,000 namespaces (`make test-long`; else 300) refuse a copy, and while all get it, another tenant's story S1 and copy "+
		"don't wait; then all have it", func(ctx SpecContext) {
		c := &crowd{scene: st.scene("f46"), size: test.Many(5_000, 300)}
		c.gather(ctx)
		c.create(ctx, c.source("s", "1"))
		Eventually(c.refused).Should(BeNumerically(">", 0), c.explain)
		stranger(ctx, st.scene("f46a"))
		Expect(c.refused()).To(BeNumerically("<", c.size), "the other tenant does not wait for the crowd")
		Eventually(c.refused).WithTimeout(5*time.Minute).Should(Equal(c.size), c.explain)
		Expect(c.served(ctx)).To(BeZero())

		inParallel(c.size, func(i int) { c.remove(ctx, full(c.child(i))) })
		stranger(ctx, st.scene("f46b"))
		Expect(c.served(ctx)).To(BeNumerically("<", c.size), "the other tenant does not wait for the crowd")
		c.calm()
		Eventually(ctx, c.served).WithTimeout(5*time.Minute).WithPolling(time.Second).Should(Equal(c.size), c.explain)
		Expect(st.Operator.Process().Running()).To(BeTrue())
		Expect(st.Operator.Sound()).To(Succeed())
	}, SpecTimeout(30*time.Minute))
})
