package budget_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
	"github.com/warren-tenancy/warren/webhooks"
)

// claim returns a PersistentVolumeClaim of so much storage.
func claim(namespace, storage string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "c-"}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(storage)}
	return c
}

// tries is what came of the first try of many creations.
type tries struct {
	refused []error
	took    []time.Duration
	raised  float64 // how many waited until the share was raised
}

// createAll creates n objects with clients at once. Who is refused tries again, as a pipeline does, and sends no Event. The report says how
// many were admitted at the first try, which the benchmark of budgets measures: on a busy machine, the webhook's time is over sooner.
func (f *fixture) createAll(ctx context.Context, n, clients int, build func(i int) client.Object) {
	GinkgoHelper()
	var again []client.Object
	var mu sync.Mutex
	f.try(ctx, n, clients, func(i int) client.Object { return build(i) }, func(one client.Object) {
		mu.Lock()
		defer mu.Unlock()
		again = append(again, one)
	})
	for _, one := range again {
		one.SetResourceVersion("")
		Eventually(ctx, func() error { return f.anyServer().Create(ctx, one) }).Should(Succeed())
	}
}

// try creates n objects with clients at once, and tries each of them once. It calls refused with those that are not admitted.
func (f *fixture) try(ctx context.Context, n, clients int, build func(i int) client.Object, refused func(client.Object)) tries {
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
				one := build(i)
				err := f.anyServer().Create(ctx, one)
				took := time.Since(start)
				mu.Lock()
				if result.took = append(result.took, took); err != nil {
					result.refused = append(result.refused, err)
				}
				mu.Unlock()
				if err != nil && refused != nil {
					refused(one)
				}
			}
		})
	}
	group.Wait()
	slices.Sort(result.took)
	at := func(part float64) time.Duration { return result.took[int(part*float64(n-1))].Round(time.Millisecond) }
	result.raised = f.countRooms(ctx) - before
	AddReportEntry("tries", fmt.Sprintf("%d of %d refused with %d clients, %.0f raised, p50 %s, p95 %s, most %s", len(result.refused), n,
		clients, result.raised, at(0.5), at(0.95), at(1)), ReportEntryVisibilityAlways)
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

// admitted is how many were admitted.
func (t tries) admitted() int { return len(t.took) - len(t.refused) }

var _ = Describe("room before the request", func() {
	It("QUOTA-80 who creates claims one after the other, far beyond the share, has each admitted, and sends no Event", func(ctx SpecContext) {
		f := plant(ctx, world, amounts("persistentvolumeclaims", "120"))
		f.awaitMark(ctx, f.web)
		f.createAll(ctx, 100, 1, func(int) client.Object { return claim(f.web, "1Gi") })
	})

	It("QUOTA-81 claims that 16 clients create at once, far beyond the share, are admitted, and the promises never exceed the limit",
		func(ctx SpecContext) {
			f := plant(ctx, world, amounts("persistentvolumeclaims", "240"))
			f.awaitMark(ctx, f.web)
			r := f.record(ctx)
			f.createAll(ctx, 200, 16, func(int) client.Object { return claim(f.web, "1Gi") })
			r.holds(240)
		})

	It("QUOTA-82 of a budget of ten claims over twenty namespaces that all create claims, exactly ten are admitted, whoever asks",
		func(ctx SpecContext) {
			f, namespaces := many(ctx, world, amounts("persistentvolumeclaims", "10"), 20)
			f.awaitMark(ctx, namespaces...)
			admitted := 0
			Eventually(ctx, func() int {
				admitted += f.try(ctx, 20, 20, func(i int) client.Object { return claim(namespaces[i], "1Gi") }, nil).admitted()
				return admitted
			}).Should(BeNumerically(">=", 10))
			Expect(admitted).To(Equal(10))
			Consistently(ctx, func() int {
				return f.try(ctx, 20, 20, func(i int) client.Object { return claim(namespaces[i], "1Gi") }, nil).admitted()
			}).WithTimeout(2 * time.Second).Should(BeZero())
		})

	It("QUOTA-83 a dry run moves no share; in a full tree, creations are refused, and no share grows",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(8))
			f.awaitMark(ctx, f.web)
			before := f.share(ctx, f.web)
			for range 2 * before {
				_ = f.Admin().Create(ctx, pod(f.web, ""), client.DryRunAll)
			}
			Expect(f.share(ctx, f.web)).To(Equal(before))
			f.fill(ctx, 8, f.web)
			Expect(f.try(ctx, 20, 4, func(int) client.Object { return pod(f.web, "") }, nil).admitted()).To(BeZero())
			Expect(f.share(ctx, f.web)).To(BeNumerically("<=", 8))
		})

	It("QUOTA-84 bare pods that need CPU, a Service with node ports, and a larger claim are admitted beyond the share",
		func(ctx SpecContext) {
			f := plant(ctx, world, amounts("requests.cpu", "40", "services.nodeports", "40", "requests.storage", "4000Gi"))
			f.awaitMark(ctx, f.web)
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: f.web, Name: "many"}}
			service.Spec.Type = corev1.ServiceTypeNodePort
			for i := range 15 {
				service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(8000 + i)})
			}
			all := []client.Object{pod(f.web, "15"), service, claim(f.web, "1500Gi")}
			f.createAll(ctx, len(all), 1, func(i int) client.Object { return all[i] })
		})

	It("QUOTA-85 a namespace has label share while it has a share, and nobody below a cluster admin may set it", func(ctx SpecContext) {
		f := plant(ctx, world, pods(20))
		f.awaitMark(ctx, f.root, f.web)
		n := &corev1.Namespace{}
		Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.web}, n)).To(Succeed())
		patch := client.MergeFrom(n.DeepCopy())
		delete(n.Labels, v1alpha1.LabelShare)
		Expect(apierrors.IsForbidden(f.Sudo("bob", f.root).Patch(ctx, n, patch))).To(BeTrue())
		f.setHard(ctx, nil)
		Eventually(ctx, func() map[string]string {
			Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.web}, n)).To(Succeed())
			return n.Labels
		}).ShouldNot(HaveKey(v1alpha1.LabelShare))
	})

	It("QUOTA-86 a review that can't be read refuses nothing; what 300 forged reviews get, a sibling gets that creates pods", func(
		ctx SpecContext) {
		f := plant(ctx, world, pods(20))
		number := `{"request":{"uid":"1","namespace":"` + f.web + `","resource":{"resource":"pods"},"object":7}}`
		for _, body := range []string{"", "{}", "[]", number} {
			Expect(f.sendReview(ctx, body)).NotTo(ContainSubstring(`"allowed":false`), body)
		}
		forged := `{"request":{"uid":"1","namespace":"` + f.web + `","resource":{"resource":"pods"},"object":{"spec":{"containers":[]}}}}`
		for range 300 {
			Expect(f.sendReview(ctx, forged)).To(ContainSubstring(`"allowed":true`))
		}
		f.fill(ctx, 20, f.db)
	})
})

// sendReview sends a text to webhook room, as anybody may who reaches the port, and returns the answer.
func (f *fixture) sendReview(ctx context.Context, body string) string {
	GinkgoHelper()
	to := fmt.Sprintf("https://127.0.0.1:%d%s", f.WebhookPort, webhooks.PathRoom)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	anybody := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := anybody.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("room with two API servers and a standby", func() {
	It("QUOTA-87 with two API servers, claims that 16 clients create at once beyond the share are admitted; QUOTA-88 also where the replica "+
		"that answers the webhook doesn't lead", func(ctx SpecContext) {
		w := startWorld(ctx, devcluster.Options{WithoutOperator: true, Webhooks: true,
			Operator: devcluster.OperatorOptions{Args: []string{"--leader-elect"}}})
		port, err := process.FreePort()
		Expect(err).NotTo(HaveOccurred())
		_, leader := startBehindGate(ctx, w, "leader", "--leader-elect", "--webhooks=true", fmt.Sprintf("--webhook-port=%d", port))
		_, err = w.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		f := plant(ctx, w, amounts("persistentvolumeclaims", "500"))
		address, err := w.ControlPlane.AddAPIServer(ctx)
		Expect(err).NotTo(HaveOccurred())
		config := w.Config(controlplane.Admin)
		config.Host = address
		second, err := w.Client(config)
		Expect(err).NotTo(HaveOccurred())
		f.servers = []client.Client{w.Admin(), second}
		f.awaitMark(ctx, f.web, f.db)
		r := f.record(ctx)

		By("a standby that answers")
		f.createAll(ctx, 200, 16, func(int) client.Object { return claim(f.web, "1Gi") })

		By("a leader that answers")
		_, err = leader.Stop()
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() error { return f.Admin().Create(ctx, claim(f.db, "1Gi")) }).Should(Succeed())
		f.setHard(ctx, amounts("persistentvolumeclaims", "501"))
		Eventually(ctx, func(g Gomega) {
			lns := &v1alpha1.LNamespace{}
			g.Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)).To(Succeed())
			g.Expect(lns.Status.Budget.Hard).To(HaveKeyWithValue(corev1.ResourceName("persistentvolumeclaims"), resource.MustParse("501")))
		}).Should(Succeed())
		f.createAll(ctx, 200, 16, func(int) client.Object { return claim(f.db, "1Gi") })
		r.holds(501)
	})
})
