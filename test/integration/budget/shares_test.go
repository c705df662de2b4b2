package budget_test

import (
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
)

// longPause is the time between two tries of who is refused.
const longPause = time.Second

var _ = Describe("shares", func() {
	It("QUOTA-06 a limit on 4 namespaces with 6 pods gives four shares within it, and the status shows what is used",
		func(ctx SpecContext) {
			f := plant(ctx, world, nil)
			for _, namespace := range []string{f.web, f.web, f.web, f.web, f.db, f.root} {
				Expect(f.Admin().Create(ctx, pod(namespace, ""))).To(Succeed())
			}
			r := f.record(ctx)
			f.setHard(ctx, pods(10))
			f.awaitShares(ctx, f.root, f.web, f.api, f.db)
			f.awaitBudget(ctx, v1alpha1.ReasonEnforced, "6")
			r.holds(10)
		})

	It("QUOTA-07 pods that are created in all namespaces in turn, until each is refused, fill the limit, and exceed it only where Kubernetes "+
		"itself counts late",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(10))
			r := f.record(ctx)
			f.fill(ctx, 10, f.root, f.web, f.api, f.db)
			for range 10 {
				_ = f.create(ctx, f.api)
				time.Sleep(longPause / 4)
			}
			f.holdsFull(ctx, r, 10)
		})

	It("QUOTA-11 a Deployment of 8 in one namespace gets its 8 pods of a limit of 10 while nobody else needs any",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(10))
			r := f.record(ctx)
			f.deploy(ctx, f.web, 8)
			f.awaitPods(ctx, f.web, 8)
			r.holds(10)
		})

	It("QUOTA-42 a Deployment of the whole limit in one namespace gets what the others have unused, too", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		r := f.record(ctx)
		f.deploy(ctx, f.web, 10)
		f.awaitPods(ctx, f.web, 10)
		r.holds(10)
	})

	It("QUOTA-12 what one namespace has unused goes to another that is refused", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		r := f.record(ctx)
		f.deploy(ctx, f.web, 8)
		f.awaitPods(ctx, f.web, 8)
		f.deploy(ctx, f.db, 2)
		f.awaitPods(ctx, f.db, 2)
		r.holds(10)
	})

	It("QUOTA-13 a Job whose pod needs 15 of 20 CPU is refused by a small share, and gets it", func(ctx SpecContext) {
		f := plant(ctx, world, amounts("requests.cpu", "20"))
		Expect(f.Admin().Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: f.web, Name: "large"}, Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: withRestart(pod(f.web, "15").Spec)},
		}})).To(Succeed())
		f.awaitPods(ctx, f.web, 1)
	})

	It("QUOTA-75 in a full tree, a user who asks for room learns what the tree has used of its limit, and the name of a manager",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(6))
			f.fill(ctx, 6, f.web)
			const full = " had used 6 of 6 when 1 was needed: delete something, or ask a manager (User mia) or a cluster admin to raise " +
				"spec.limits.hard"
			stdout, stderr, code := f.Kubectl(ctx, "alice", "warren", "quota", "ask", "-n", f.db, "pods=1")
			Expect(code).NotTo(BeZero(), stdout)
			Expect(stderr).To(And(ContainSubstring("tenant "+f.root+full), Not(ContainSubstring("quota ask"))))
			stdout, stderr, code = f.Kubectl(ctx, "alice", "warren", "quota", "-n", f.db)
			Expect(code).To(BeZero(), stderr)
			Expect(stdout).To(ContainSubstring("tenant " + f.root + full))
			Expect(f.awaitBudget(ctx, v1alpha1.ReasonEnforced, "6")).To(ContainSubstring("nothing is free of pods: delete something"))
		})

	It("QUOTA-15 in a full tree, what one namespace deletes another one gets that tries again", func(ctx SpecContext) {
		f := plant(ctx, world, pods(6))
		f.fill(ctx, 6, f.web)
		r := f.record(ctx)
		Expect(isRefused(f.create(ctx, f.db))).To(BeTrue())
		f.deletePods(ctx, f.web, 1)
		Eventually(ctx, func() error { return f.create(ctx, f.db) }).WithPolling(longPause).Should(Succeed())
		r.holds(6)
	})

	It("QUOTA-76 a Deployment whose ReplicaSet is refused gets it, once others have room that is free", func(ctx SpecContext) {
		f := plant(ctx, world, amounts("count/replicasets.apps", "4"))
		for i := range 4 {
			f.deployNamed(ctx, f.web, "d"+strconv.Itoa(i), 1)
		}
		Eventually(ctx, func(g Gomega) {
			sets := &appsv1.ReplicaSetList{}
			g.Expect(f.Admin().List(ctx, sets, client.InNamespace(f.web))).To(Succeed())
			g.Expect(sets.Items).To(HaveLen(4))
		}).Should(Succeed())
	})

	DescribeTable("QUOTA-76 the refusals that other controllers report count like FailedCreate",
		func(ctx SpecContext, reason, message string) {
			f := plant(ctx, world, pods(12))
			before := f.share(ctx, f.db)
			event := build.FailedCreate(f.db, message+"exceeded quota: hrq.tenancy.warren.dev, requested: pods=8, used: pods=0, limited: pods=1")
			event.Reason = reason
			Expect(before).To(BeNumerically("<", 8))
			Eventually(ctx, func() int64 { // a controller tries again, and reports each refusal
				Expect(f.Admin().Create(ctx, event.DeepCopy())).To(Succeed())
				return f.share(ctx, f.db)
			}).WithPolling(longPause).Should(BeNumerically(">=", 8))
		},
		Entry("Argo Rollouts", "ReplicaSetCreateError", `Failed to create new replica set "web-1": replicasets.apps "web-1" is forbidden: `),
		Entry("Tekton", "ExceededResourceQuota", `TaskRun Pod exceeded available resources: pods "build-pod" is forbidden: `),
		Entry("KubeVirt", "ErrExceededQuota", `persistentvolumeclaims "disk" is forbidden: `),
	)

	It("QUOTA-18 who is refused two resources, one of which is used up, takes no room of the other one from anybody",
		func(ctx SpecContext) {
			f := plant(ctx, world, amounts("pods", "10", "count/configmaps", "4")) // each namespace has kube-root-ca.crt
			f.deploy(ctx, f.web, 3)
			f.awaitPods(ctx, f.web, 3)
			shares := func() []int64 { return []int64{f.share(ctx, f.root), f.share(ctx, f.web), f.share(ctx, f.db)} }
			before, since := shares(), time.Now()
			Eventually(ctx, func() time.Duration { // others grow again when the refusals of the Deployment no longer hold
				if now := shares(); !slices.Equal(now, before) {
					before, since = now, time.Now()
				}
				return time.Since(since)
			}).Should(BeNumerically(">", budget.RefusalHolds+time.Second))
			f.refuse(ctx, f.Admin(), f.db, "exceeded quota: hrq.tenancy.warren.dev, requested: pods=9,count/configmaps=1, used: x, limited: x")
			Consistently(ctx, shares).WithTimeout(3 * time.Second).Should(Equal(before))
		})

	It("QUOTA-19 a limit below what is used is Exceeded: nothing is deleted, and nothing is admitted until enough is gone",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(10))
			f.fill(ctx, 8, f.web)
			f.setHard(ctx, pods(6))
			Expect(f.awaitBudget(ctx, v1alpha1.ReasonExceeded, "8")).To(ContainSubstring("pods: 8 used of 6, most in " + f.web + " (8)"))
			Eventually(ctx, func() bool { return isRefused(f.Admin().Create(ctx, pod(f.db, ""), client.DryRunAll)) }).Should(BeTrue())
			Expect(f.countPods(ctx)).To(Equal(8))
			f.deletePods(ctx, f.web, 3)
			Eventually(ctx, func() error { return f.create(ctx, f.db) }).WithPolling(longPause).Should(Succeed())
			Consistently(ctx, func() bool { return isRefused(f.create(ctx, f.db)) }).WithTimeout(2 * time.Second).Should(BeTrue())
		})

	It("QUOTA-20 a higher limit serves who is refused", func(ctx SpecContext) {
		f := plant(ctx, world, pods(5))
		f.fill(ctx, 5, f.web)
		Expect(isRefused(f.create(ctx, f.db))).To(BeTrue())
		f.setHard(ctx, pods(10))
		Eventually(ctx, func() error { return f.create(ctx, f.db) }).WithPolling(longPause).Should(Succeed())
	})

	It("QUOTA-21 without a limit there are no shares, and the status says nothing of a budget", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		f.awaitBudget(ctx, v1alpha1.ReasonEnforced, "0")
		f.setHard(ctx, nil)
		for _, namespace := range []string{f.root, f.web, f.api, f.db} {
			Eventually(ctx, func() bool {
				_, err := f.quota(ctx, namespace)
				return apierrors.IsNotFound(err)
			}).Should(BeTrue())
		}
		Eventually(ctx, func(g Gomega) {
			lns := &v1alpha1.LNamespace{}
			g.Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)).To(Succeed())
			g.Expect(lns.Status.Budget).To(BeNil())
			g.Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBudgetEnforced)).To(BeNil())
		}).Should(Succeed())
	})
})

var _ = Describe("namespaces that come and go", func() {
	It("QUOTA-22 in a new sub-namespace nothing is created by a user before the share is in force", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		fresh := f.root + "-new"
		Expect(f.As("alice").Create(ctx, &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: f.root, Name: fresh}})).To(Succeed())
		Eventually(ctx, func() error {
			return f.As("alice").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fresh, Name: "first"}})
		}).WithPolling(5 * time.Millisecond).Should(Succeed())
		q, err := f.quota(ctx, fresh)
		Expect(err).NotTo(HaveOccurred())
		Expect(q.Status.Hard).To(HaveKey(corev1.ResourcePods))
	})

	It("QUOTA-24 a namespace with pods that is placed in a tree counts with them, even beyond the limit", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		f.fill(ctx, 8, f.web)
		old := f.root + "-old"
		Expect(f.Admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: old}})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(f.Admin().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: old}})).To(Succeed())
		})
		f.awaitNamespace(ctx, old)
		for range 4 {
			Expect(f.Admin().Create(ctx, pod(old, ""))).To(Succeed())
		}
		f.mark(ctx, old)
		f.place(ctx, old, f.root)
		f.awaitBudget(ctx, v1alpha1.ReasonExceeded, "12")
	})

	It("QUOTA-25 a namespace that terminates counts until it is gone", func(ctx SpecContext) {
		f := plant(ctx, world, pods(4))
		held := pod(f.api, "")
		held.Finalizers = []string{"example.com/held"}
		Eventually(ctx, func() error {
			err := f.Admin().Create(ctx, held)
			if isRefused(err) {
				f.refuse(ctx, f.Admin(), f.api, err.Error())
			}
			return err
		}).WithPolling(longPause).Should(Succeed())
		f.awaitBudget(ctx, v1alpha1.ReasonEnforced, "1")
		Expect(f.Admin().Delete(ctx, &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: f.web, Name: f.api}})).To(Succeed())
		r := f.record(ctx)
		f.fill(ctx, 4, f.web, f.db)
		Expect(isRefused(f.create(ctx, f.db))).To(BeTrue())
		r.holds(4)
		patch := client.MergeFrom(held.DeepCopy())
		held.Finalizers = nil
		Expect(f.Admin().Patch(ctx, held, patch)).To(Succeed())
		f.fill(ctx, 4, f.web, f.db)
	})

	It("QUOTA-26 a sub-namespace that is deleted and made anew ten times loses no share for the others", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		r := f.record(ctx)
		for range 10 {
			Expect(f.Admin().Delete(ctx, &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: f.web, Name: f.api}})).To(Succeed())
			Eventually(ctx, func() bool {
				return apierrors.IsNotFound(f.Admin().Get(ctx, client.ObjectKey{Name: f.api}, &corev1.Namespace{}))
			}).Should(BeTrue())
			f.addSub(ctx, f.web, f.api)
			f.awaitShares(ctx, f.api)
		}
		f.fill(ctx, 10, f.api)
		r.holds(10)
	})
})
