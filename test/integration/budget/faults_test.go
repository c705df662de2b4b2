package budget_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/gate"
)

// churn creates pods in many namespaces at once, each of which is tried again until it stands.
func (f *fixture) churn(ctx context.Context, namespaces []string, creations, atOnce int) {
	GinkgoHelper()
	work := make(chan string)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			defer GinkgoRecover()
			for namespace := range work {
				Eventually(ctx, func() error { return f.create(ctx, namespace) }).WithPolling(longPause).Should(Succeed())
			}
		})
	}
	for i := range creations {
		work <- namespaces[i%len(namespaces)]
	}
	close(work)
	workers.Wait()
}

// many makes a tenant with n sub-namespaces.
func many(ctx context.Context, w *devcluster.World, hard v1alpha1.Budget, n int) (f *fixture, namespaces []string) {
	GinkgoHelper()
	f = &fixture{World: w, root: unique("many")}
	f.createTenant(ctx, hard)
	for i := range n {
		namespaces = append(namespaces, fmt.Sprintf("%s-%d", f.root, i))
		f.addSub(ctx, f.root, namespaces[i])
	}
	f.awaitShares(ctx, namespaces...)
	return f, namespaces
}

var _ = Describe("many at once", func() {
	It("QUOTA-08 in 20 namespaces, 100 pods that 30 clients create at once fill the limit of 100, and the promises never exceed it",
		func(ctx SpecContext) {
			f, namespaces := many(ctx, world, pods(100), 20)
			r := f.record(ctx)
			f.churn(ctx, namespaces, 100, 30)
			Consistently(ctx, func() bool { return isRefused(f.create(ctx, namespaces[0])) }).WithTimeout(2 * time.Second).Should(BeTrue())
			f.holdsFull(ctx, r, 100)
		})

	It("QUOTA-10 while pods are created and deleted, the promises never exceed the limit", func(ctx SpecContext) {
		f, namespaces := many(ctx, world, pods(30), 6)
		r := f.record(ctx)
		for range 4 {
			f.churn(ctx, namespaces, 24, 12)
			for _, namespace := range namespaces {
				f.deletePods(ctx, namespace, 4)
			}
		}
		r.holds(30)
	})
})

var _ = Describe("several API servers", func() {
	It("QUOTA-09 with two API servers, which count for themselves, 60 pods at once in 12 namespaces fill a limit of 60, and never exceed it",
		Label("slow"), func(ctx SpecContext) {
			w := startWorld(ctx, devcluster.Options{})
			address, err := w.ControlPlane.AddAPIServer(ctx)
			Expect(err).NotTo(HaveOccurred())
			config := w.Config(controlplane.Admin)
			config.Host = address
			second, err := w.Client(config)
			Expect(err).NotTo(HaveOccurred())
			f, namespaces := many(ctx, w, pods(60), 12)
			f.servers = []client.Client{w.Admin(), second}
			r := f.record(ctx)
			f.churn(ctx, namespaces, 60, 30)
			Consistently(ctx, func() bool { return isRefused(f.create(ctx, namespaces[0])) }).WithTimeout(3 * time.Second).Should(BeTrue())
			f.holdsFull(ctx, r, 60)
		})
})

// startBehindGate starts an operator behind a gate.
func startBehindGate(ctx context.Context, w *devcluster.World, name string, args ...string) (*gate.Gate, *devcluster.Operator) {
	GinkgoHelper()
	g := gate.New(w)
	operator, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: g.Kubeconfig(w), Dir: filepath.Join(w.Dir, name), Args: args,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(operator.Kill)
	return g, operator
}

func writesShare(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/resourcequotas")
}

var _ = Describe("faults", Ordered, func() {
	var w *devcluster.World
	var g *gate.Gate
	var operator *devcluster.Operator
	BeforeAll(func(ctx SpecContext) {
		w = startWorld(ctx, devcluster.Options{WithoutOperator: true})
		g, operator = startBehindGate(ctx, w, "first", "--leader-elect")
	})

	It("QUOTA-29 whether answers to writes of shares are lost or the operator is killed at a write, the promises never exceed the limit, "+
		"and it fills", Label("slow"), func(ctx SpecContext) {
		f, namespaces := many(ctx, w, pods(40), 8)
		r := f.record(ctx)
		var writes atomic.Int32
		g.LoseAnswers(func(r *http.Request) bool { return writesShare(r) && writes.Add(1)%3 == 0 })
		f.churn(ctx, namespaces, 20, 10)
		g.LoseAnswers(nil)
		Expect(writes.Load()).To(BeNumerically(">", 3))
		for range 3 {
			g.HoldAfter(1, writesShare)
			done := make(chan struct{})
			go func() {
				defer GinkgoRecover()
				defer close(done)
				f.churn(ctx, namespaces, 4, 4)
			}()
			time.Sleep(3 * time.Second) // a write is held by then, or nothing had to be written
			Expect(operator.Kill()).To(Succeed())
			g.Release()
			Expect(operator.Start(ctx)).To(Succeed())
			<-done
		}
		f.churn(ctx, namespaces, 40-f.countPods(ctx), 8)
		f.holdsFull(ctx, r, 40)
	})

	It("QUOTA-40 while the watches are frozen, the promises never exceed the limit, and afterwards it fills", func(ctx SpecContext) {
		f := plant(ctx, w, pods(12))
		r := f.record(ctx)
		g.Freeze(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "resourcequotas") })
		for _, namespace := range []string{f.web, f.db, f.api} {
			for range 4 {
				_ = f.create(ctx, namespace)
			}
		}
		g.Thaw()
		f.fill(ctx, 12, f.web, f.db)
		r.holds(12)
	})

	It("QUOTA-23 while Kubernetes doesn't count, nobody gets rights in a new namespace, NotCounted names it, and then all settles",
		func(ctx SpecContext) {
			f := plant(ctx, w, pods(10))
			Expect(w.ControlPlane.Controllers.Stop()).To(Succeed())
			fresh := f.root + "-new"
			Expect(f.Admin().Create(ctx, &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: f.root, Name: fresh}})).To(Succeed())
			Expect(f.awaitBudget(ctx, v1alpha1.ReasonNotCounted, "")).To(ContainSubstring("the ResourceQuota of " + fresh + " has not been counted"))
			rights := &rbacv1.RoleBindingList{}
			Expect(f.Admin().List(ctx, rights, client.InNamespace(fresh))).To(Succeed())
			Expect(rights.Items).To(BeEmpty())
			Expect(w.ControlPlane.Controllers.Start()).To(Succeed())
			f.awaitShares(ctx, fresh)
			f.awaitBudget(ctx, v1alpha1.ReasonEnforced, "")
			Eventually(ctx, func() []rbacv1.RoleBinding {
				Expect(f.Admin().List(ctx, rights, client.InNamespace(fresh))).To(Succeed())
				return rights.Items
			}).ShouldNot(BeEmpty())
		})

	It("QUOTA-32 a restart of the operator at rest writes no share",
		func(ctx SpecContext) {
			f, namespaces := many(ctx, w, pods(100), 10)
			f.awaitBudget(ctx, v1alpha1.ReasonEnforced, "0")
			versions := map[string]string{}
			for _, namespace := range namespaces {
				versions[namespace] = f.version(ctx, namespace)
			}
			var writes atomic.Int32
			g.Script(func(r gate.Request) gate.Fault {
				if writesShare(r.Request) {
					writes.Add(1)
				}
				return gate.Fault{}
			})
			Expect(operator.Restart(ctx)).To(Succeed())
			time.Sleep(7 * time.Second) // longer than a new leader waits
			for _, namespace := range namespaces {
				Expect(f.version(ctx, namespace)).To(Equal(versions[namespace]))
			}
			Expect(writes.Load()).To(BeZero())
			f.refuse(ctx, f.Admin(), f.root, budgetRefusal("pods=60"))
			Eventually(ctx, func() int64 { return f.share(ctx, f.root) }).Should(BeNumerically(">=", 60), "it is at work")
		})

	It("QUOTA-14 a claim beyond the share is refused, and accepted after kubectl warren quota ask",
		func(ctx SpecContext) {
			f := plant(ctx, w, amounts("requests.storage", "2Ti"))
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.web, Name: "large"}}
			claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1500Gi")}
			err := f.Admin().Create(ctx, claim)
			Expect(isRefused(err)).To(BeTrue(), "%v", err)
			f.Plugins = world.Plugins
			stdout, stderr, code := f.Kubectl(ctx, "alice", "warren", "quota", "ask", "-n", f.web, "requests.storage=1500Gi")
			Expect(code).To(BeZero(), stdout+stderr)
			Expect(f.Admin().Create(ctx, claim)).To(Succeed(), stdout)
		})

	It("QUOTA-17 an Event in another form counts as one unit of each resource, and one about another quota as none",
		func(ctx SpecContext) {
			f := plant(ctx, w, pods(12))
			Eventually(ctx, func(g Gomega) { // now no share grows without a refusal
				for f.Admin().Create(ctx, pod(f.db, "")) == nil {
				}
				g.Expect(f.share(ctx, f.root) + f.share(ctx, f.web) + f.share(ctx, f.api) + f.share(ctx, f.db)).To(BeEquivalentTo(12))
				full, err := f.quota(ctx, f.db)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(full.Status.Used.Pods().Value()).To(Equal(full.Spec.Hard.Pods().Value()))
			}).Should(Succeed())
			full := f.share(ctx, f.db)
			f.refuse(ctx, f.Admin(), f.db, "exceeded quota: theirs, requested: pods=2, used: pods=0, limited: pods=1")
			Consistently(ctx, func() int64 { return f.share(ctx, f.db) }).WithTimeout(2 * time.Second).Should(Equal(full))
			f.refuse(ctx, f.Admin(), f.db, "exceeded quota: hrq.tenancy.warren.dev, and more")
			Eventually(ctx, func() int64 { return f.share(ctx, f.db) }).Should(BeNumerically(">", full))
		})

	It("QUOTA-31 while no operator runs, creations within a share pass, those beyond it are refused, and deletions pass",
		func(ctx SpecContext) {
			f := plant(ctx, w, pods(20))
			_, err := operator.Stop()
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { Expect(operator.Start(ctx)).To(Succeed()) })
			share := f.share(ctx, f.web)
			Expect(share).To(BeNumerically(">", 0))
			for range share {
				Expect(f.create(ctx, f.web)).To(Succeed())
			}
			Expect(isRefused(f.create(ctx, f.web))).To(BeTrue())
			f.deletePods(ctx, f.web, 1)
			Eventually(ctx, func() error { return f.create(ctx, f.web) }).Should(Succeed())
		})

	It("QUOTA-30 a leader that was frozen while another led writes no share when it goes on", func(ctx SpecContext) {
		f, namespaces := many(ctx, w, pods(40), 8)
		r := f.record(ctx)
		_, _ = startBehindGate(ctx, w, "second", "--leader-elect")
		f.churn(ctx, namespaces, 10, 5)
		Expect(operator.Process().Signal(syscall.SIGSTOP)).To(Succeed())
		f.churn(ctx, namespaces, 30, 8)
		Expect(operator.Process().Signal(syscall.SIGCONT)).To(Succeed())
		Eventually(operator.Process().Done()).Should(BeClosed())
		f.holdsFull(ctx, r, 40)
	})
})

var _ = Describe("a cluster without component budgets", func() {
	It("QUOTA-05 the operator says NotInstalled, and the tenant is not Ready; QUOTA-43 with the CRD, and without the rights of the "+
		"component, it says Forbidden", func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		f := plant(ctx, w, nil)
		f.setHard(ctx, pods(10))
		Expect(f.awaitBudget(ctx, v1alpha1.ReasonNotInstalled, "")).To(ContainSubstring("component budgets is not installed"))
		lns := &v1alpha1.LNamespace{}
		Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)).To(Succeed())
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady)).To(HaveField("Reason", "NotInstalled"))

		definitions, err := devcluster.Render("config/crd/budgets")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), definitions)).To(Succeed())
		Expect(f.awaitBudget(ctx, v1alpha1.ReasonForbidden, "")).To(ContainSubstring("installs component budgets with its rights"))
	})
})

const quotasAreCopied = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
propagation:
  kinds:
  - {group: rbac.authorization.k8s.io, kind: RoleBinding, mode: OptIn}
  - {kind: ResourceQuota, mode: OptIn}
subNamespaces: {limits: {hard: {count/secrets: "50", pods: "5"}}}
`

var _ = Describe("rails and the count", Ordered, func() {
	var w *devcluster.World
	BeforeAll(func(ctx SpecContext) {
		w = startWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: quotasAreCopied}})
	})

	It("QUOTA-04 the budget of the configuration and that of the LNamespace hold together, resource by resource",
		func(ctx SpecContext) {
			f := plant(ctx, w, amounts("pods", "3"))
			Eventually(ctx, func(g Gomega) {
				lns := &v1alpha1.LNamespace{}
				g.Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)).To(Succeed())
				g.Expect(lns.Status.Budget).NotTo(BeNil())
				g.Expect(lns.Status.Budget.Hard.Pods().String()).To(Equal("3"))
				g.Expect(lns.Status.Budget.Hard["count/secrets"]).To(Equal(resource.MustParse("50")))
			}).Should(Succeed())
		})

	It("QUOTA-39 rights in a new namespace wait until Kubernetes has counted each copied ResourceQuota", func(ctx SpecContext) {
		f := plant(ctx, w, nil)
		rail := shareIn(f.root, "rail")
		rail.Labels = map[string]string{v1alpha1.LabelPropagate: string(v1alpha1.ModeUpdate)}
		Expect(f.Admin().Create(ctx, rail)).To(Succeed())
		Eventually(ctx, func() error {
			return f.Admin().Get(ctx, client.ObjectKey{Namespace: f.web, Name: "rail"}, &corev1.ResourceQuota{})
		}).Should(Succeed())
		fresh := f.root + "-new"
		Expect(f.Admin().Create(ctx, &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: f.root, Name: fresh}})).To(Succeed())
		rights := &rbacv1.RoleBindingList{}
		Eventually(ctx, func() []rbacv1.RoleBinding {
			Expect(f.Admin().List(ctx, rights, client.InNamespace(fresh))).To(Succeed())
			return rights.Items
		}).WithPolling(5 * time.Millisecond).ShouldNot(BeEmpty())
		copied := &corev1.ResourceQuota{}
		Expect(f.Admin().Get(ctx, client.ObjectKey{Namespace: fresh, Name: "rail"}, copied)).To(Succeed())
		Expect(copied.Status.Hard).To(HaveKey(corev1.ResourcePods))
	})
})
