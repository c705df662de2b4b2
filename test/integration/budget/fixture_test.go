package budget_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// fixture is a tenant, payments, with sub-namespaces web (which has a sub-namespace api) and db.
type fixture struct {
	*devcluster.World
	root, web, api, db string
	// servers are the admin's clients of several API servers, of which create takes any; nil: that of the World.
	servers []client.Client
}

func pods(n int) v1alpha1.Budget { return amounts("pods", fmt.Sprint(n)) }

// amounts returns a budget of pairs of resource and quantity.
func amounts(pairs ...string) v1alpha1.Budget {
	b := v1alpha1.Budget{}
	for i := 0; i < len(pairs); i += 2 {
		b[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return b
}

// plant makes the tenant, of which alice is user, mia manager and bob sudoer, and waits until the shares are counted and they may work.
func plant(ctx context.Context, w *devcluster.World, hard v1alpha1.Budget) *fixture {
	GinkgoHelper()
	return plantNamed(ctx, w, "payments", hard)
}

func plantNamed(ctx context.Context, w *devcluster.World, name string, hard v1alpha1.Budget) *fixture {
	GinkgoHelper()
	f := &fixture{World: w, root: unique(name)}
	f.web, f.api, f.db = f.root+"-web", f.root+"-api", f.root+"-db"
	f.createTenant(ctx, hard)
	f.addSub(ctx, f.root, f.web)
	f.addSub(ctx, f.root, f.db)
	f.addSub(ctx, f.web, f.api)
	if len(hard) > 0 {
		f.awaitShares(ctx, f.root, f.web, f.api, f.db)
	}
	f.awaitPeople(ctx)
	return f
}

// awaitPeople waits until alice, mia and bob may do what they may as user, manager and sudoer.
func (f *fixture) awaitPeople(ctx context.Context) {
	GinkgoHelper()
	for _, namespace := range []string{f.root, f.web, f.api, f.db} {
		for _, person := range []client.Client{f.As("alice"), f.Sudo("bob", f.root)} {
			Eventually(ctx, func() error { return person.List(ctx, &corev1.PodList{}, client.InNamespace(namespace)) }).Should(Succeed())
		}
	}
	Eventually(ctx, func() error { return f.As("mia").Get(ctx, client.ObjectKey{Name: f.root}, &v1alpha1.LNamespace{}) }).Should(Succeed())
}

func (f *fixture) createTenant(ctx context.Context, hard v1alpha1.Budget) {
	GinkgoHelper()
	person := func(name string) []v1alpha1.Subject { return []v1alpha1.Subject{{Kind: "User", Name: name}} }
	lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: f.root}, Spec: v1alpha1.LNamespaceSpec{
		Users: person("alice"), Managers: person("mia"), Sudoers: person("bob"), AllowCascadingDeletion: true,
	}}
	if len(hard) > 0 {
		lns.Spec.Limits = &v1alpha1.Limits{Hard: hard}
	}
	Expect(f.Admin().Create(ctx, lns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(f.Admin().Delete(ctx, lns))).To(Succeed()) })
	f.awaitNamespace(ctx, f.root)
}

func (f *fixture) addSub(ctx context.Context, parent, name string) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name}})).To(Succeed())
	f.awaitNamespace(ctx, name)
}

// awaitNamespace waits until a namespace has its default service account, without which no pod is admitted.
func (f *fixture) awaitNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		return f.Admin().Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	}).Should(Succeed())
}

func (f *fixture) quota(ctx context.Context, namespace string) (*corev1.ResourceQuota, error) {
	q := &corev1.ResourceQuota{}
	return q, f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: budget.QuotaName}, q)
}

// awaitShares waits until the shares of namespaces are in force.
func (f *fixture) awaitShares(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		Eventually(ctx, func(g Gomega) {
			q, err := f.quota(ctx, namespace)
			g.Expect(err).NotTo(HaveOccurred(), "the tenant says %v", f.conditions(ctx))
			g.Expect(q.Spec.Hard).NotTo(BeEmpty())
			for key := range q.Spec.Hard {
				g.Expect(q.Status.Hard).To(HaveKey(key))
			}
		}).Should(Succeed())
	}
}

// conditions are what the tenant says of itself.
func (f *fixture) conditions(ctx context.Context) []metav1.Condition {
	lns := &v1alpha1.LNamespace{}
	_ = f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)
	return lns.Status.Conditions
}

// pod returns a pod that requests cpu, unless that is "".
func pod(namespace, cpu string) *corev1.Pod {
	p := build.Pod(namespace)
	if cpu != "" {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	}
	return p
}

func isRefused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: "+budget.QuotaName)
}

// create makes a pod as the cluster admin, as a person would: who is refused sends the Event that kubectl warren quota ask sends.
func (f *fixture) create(ctx context.Context, namespace string) error {
	admin := f.anyServer()
	err := admin.Create(ctx, pod(namespace, ""))
	if isRefused(err) {
		f.refuse(ctx, admin, namespace, err.Error())
	}
	return err
}

// anyServer returns the admin's client of one of the API servers.
func (f *fixture) anyServer() client.Client {
	if len(f.servers) > 0 {
		return f.servers[rand.IntN(len(f.servers))]
	}
	return f.Admin()
}

// refuse sends the Event of a controller whose object was refused.
func (f *fixture) refuse(ctx context.Context, as client.Client, namespace, message string) {
	GinkgoHelper()
	Expect(as.Create(ctx, build.FailedCreate(namespace, message))).To(Succeed())
}

// share is how many pods the share of a namespace allows.
func (f *fixture) share(ctx context.Context, namespace string) int64 {
	GinkgoHelper()
	q, err := f.quota(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	return q.Spec.Hard.Pods().Value()
}

// deploy makes a Deployment of pods.
func (f *fixture) deploy(ctx context.Context, namespace string, replicas int) {
	GinkgoHelper()
	f.deployNamed(ctx, namespace, "d", replicas)
}

func (f *fixture) deployNamed(ctx context.Context, namespace, name string, replicas int) {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Replicas, d.Spec.Selector = new(int32(replicas)), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(namespace, "").Spec}
	Expect(f.Admin().Create(ctx, d)).To(Succeed())
}

func withRestart(spec corev1.PodSpec) corev1.PodSpec {
	spec.RestartPolicy = corev1.RestartPolicyNever
	return spec
}

// awaitPods waits until a namespace has so many pods. It touches the ReplicaSets, whose controller waits for minutes after some refusals
// in a row, and on a busy machine there are more of them.
func (f *fixture) awaitPods(ctx context.Context, namespace string, n int) {
	GinkgoHelper()
	Eventually(ctx, func() int {
		list, sets := &corev1.PodList{}, &appsv1.ReplicaSetList{}
		Expect(f.Admin().List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
		for i := range sets.Items {
			Expect(client.IgnoreNotFound(f.Admin().Patch(ctx, &sets.Items[i], build.Touch()))).To(Succeed())
		}
		Expect(f.Admin().List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		return len(list.Items)
	}).WithPolling(longPause).Should(Equal(n))
}

// mark allows a namespace to join the tree, as kubectl warren mark does.
func (f *fixture) mark(ctx context.Context, namespace string) {
	GinkgoHelper()
	root, n := &corev1.Namespace{}, &corev1.Namespace{}
	Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, root)).To(Succeed())
	Expect(f.Admin().Get(ctx, client.ObjectKey{Name: namespace}, n)).To(Succeed())
	patch := client.MergeFrom(n.DeepCopy())
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationAdopt, string(root.UID))
	Expect(f.Admin().Patch(ctx, n, patch)).To(Succeed())
}

// place puts a namespace below a parent, as a cluster admin.
func (f *fixture) place(ctx context.Context, namespace, parent string) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: v1alpha1.HierarchyConfigurationName}, Spec: v1alpha1.HierarchyConfigurationSpec{Parent: &parent}})).To(Succeed())
}

// fill creates pods in these namespaces in turn, each until it is refused, and tries each second, until there are as many as want.
func (f *fixture) fill(ctx context.Context, want int, namespaces ...string) {
	GinkgoHelper()
	Eventually(ctx, func() int {
		for _, namespace := range namespaces {
			for f.countPods(ctx) < want && f.create(ctx, namespace) == nil {
			}
		}
		return f.countPods(ctx)
	}).WithPolling(longPause).Should(BeNumerically(">=", want))
}

// countPods counts the pods of the tree.
func (f *fixture) countPods(ctx context.Context) (n int) {
	GinkgoHelper()
	for _, one := range f.podsByNamespace(ctx) {
		n += one
	}
	return n
}

func (f *fixture) podsByNamespace(ctx context.Context) map[string]int {
	GinkgoHelper()
	list, n := &corev1.PodList{}, map[string]int{}
	Expect(f.Admin().List(ctx, list)).To(Succeed())
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Namespace, f.root) {
			n[list.Items[i].Namespace]++
		}
	}
	return n
}

// countSecrets counts the Secrets of the tree.
func (f *fixture) countSecrets(ctx context.Context) (n int) {
	GinkgoHelper()
	all := &corev1.SecretList{}
	Expect(f.Admin().List(ctx, all)).To(Succeed())
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Namespace, f.root) {
			n++
		}
	}
	return n
}

// deletePods deletes pods of a namespace.
func (f *fixture) deletePods(ctx context.Context, namespace string, n int) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(f.Admin().List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	Expect(len(list.Items)).To(BeNumerically(">=", n))
	for i := range n {
		Expect(f.Admin().Delete(ctx, &list.Items[i], client.GracePeriodSeconds(0))).To(Succeed())
	}
}

func (f *fixture) setHard(ctx context.Context, hard v1alpha1.Budget) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		lns := &v1alpha1.LNamespace{}
		if err := f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns); err != nil {
			return err
		}
		lns.Spec.Limits = &v1alpha1.Limits{Hard: hard}
		return f.Admin().Update(ctx, lns)
	}).Should(Succeed())
}

// awaitBudget waits until the tenant's condition has a reason, and returns the condition and what is used.
func (f *fixture) awaitBudget(ctx context.Context, reason v1alpha1.Reason, used string) (message string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		lns := &v1alpha1.LNamespace{}
		g.Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)).To(Succeed())
		c := meta.FindStatusCondition(lns.Status.Conditions, string(v1alpha1.ConditionBudgetEnforced))
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Reason).To(Equal(string(reason)), c.Message)
		if used != "" {
			g.Expect(lns.Status.Budget.Used).To(HaveKey(corev1.ResourcePods))
			g.Expect(lns.Status.Budget.Used.Pods().String()).To(Equal(used))
		}
		message = c.Message
	}).Should(Succeed())
	return message
}

// replay watches all shares of a tree, and knows whether their promises ever exceeded the limit.
type replay struct {
	mu       sync.Mutex
	prefix   string
	promises map[string]int64
	worst    int64            // the largest sum of promises
	excess   map[string]int64 // by how much Kubernetes' own count has put more into a namespace than its share, at most
	seen     int
}

// record begins to watch the shares of the tree for pods.
func (f *fixture) record(ctx context.Context) *replay {
	GinkgoHelper()
	r := &replay{prefix: f.root, promises: map[string]int64{}, excess: map[string]int64{}}
	ctx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	w, err := f.Admin().Watch(ctx, &corev1.ResourceQuotaList{}, client.MatchingFields{"metadata.name": budget.QuotaName})
	Expect(err).NotTo(HaveOccurred())
	go func() {
		for event := range w.ResultChan() {
			if q, is := event.Object.(*corev1.ResourceQuota); is && strings.HasPrefix(q.Namespace, r.prefix) {
				r.take(event.Type, q)
			}
		}
	}()
	return r
}

func (r *replay) take(what watch.EventType, q *corev1.ResourceQuota) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	hard, counted, used := q.Spec.Hard[corev1.ResourcePods], q.Status.Hard[corev1.ResourcePods], q.Status.Used[corev1.ResourcePods]
	r.promises[q.Namespace] = max(hard.Value(), counted.Value())
	if what == watch.Deleted {
		delete(r.promises, q.Namespace)
	}
	r.excess[q.Namespace] = max(r.excess[q.Namespace], used.Value()-max(hard.Value(), counted.Value()))
	sum := int64(0)
	for _, promise := range r.promises {
		sum += promise
	}
	r.worst = max(r.worst, sum)
}

// holdsFull asserts that a tree is full, and that no sum of promises was larger than the limit. Pods above the limit need an excuse: in
// their namespace, Kubernetes itself has counted fewer than there were, or still does.
func (f *fixture) holdsFull(ctx context.Context, r *replay, limit int) {
	GinkgoHelper()
	r.holds(limit)
	Eventually(ctx, func(g Gomega) {
		all, excused := f.podsByNamespace(ctx), 0
		pods := 0
		for namespace, n := range all {
			q, err := f.quota(ctx, namespace)
			g.Expect(err).NotTo(HaveOccurred())
			pods, excused = pods+n, excused+max(r.excessOf(namespace), n-int(q.Status.Used.Pods().Value()), 0)
		}
		g.Expect(pods).To(BeNumerically(">=", limit))
		g.Expect(pods-excused).To(BeNumerically("<=", limit), "%v", all)
	}).Should(Succeed())
}

// excessOf is by how much Kubernetes has put more into a namespace than its share, at most.
func (r *replay) excessOf(namespace string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.excess[namespace])
}

// holds asserts that no sum of promises was larger than the limit.
func (r *replay) holds(limit int) {
	GinkgoHelper()
	r.mu.Lock()
	defer r.mu.Unlock()
	Expect(r.seen).To(BeNumerically(">", 0))
	Expect(r.worst).To(BeNumerically("<=", limit), "the sum of the promises")
}
