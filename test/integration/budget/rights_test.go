package budget_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("rights", func() {
	It("QUOTA-03 a manager and a sudoer may not set spec.limits.hard; a cluster admin may", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		raise := func(as client.Client) error {
			lns := &v1alpha1.LNamespace{}
			Expect(f.Admin().Get(ctx, client.ObjectKey{Name: f.root}, lns)).To(Succeed())
			lns.Spec.Limits.Hard = pods(1000)
			return as.Update(ctx, lns)
		}
		Expect(raise(f.As("mia"))).To(MatchError(ContainSubstring("spec.limits may be set only by someone who may update every LNamespace")))
		Expect(apierrors.IsForbidden(raise(f.Sudo("bob", f.root)))).To(BeTrue())
		Eventually(ctx, func() error { return raise(f.Admin()) }).Should(Succeed())
	})

	It("QUOTA-16 300 forged Events raise a share at most five times a second, and move nothing in another tree",
		func(ctx SpecContext) {
			f, shop := plant(ctx, world, pods(1000)), plantNamed(ctx, world, "shop", pods(10))
			before := shop.share(ctx, shop.web)
			writes := shop.version(ctx, shop.web)
			message := budgetRefusal("pods=1")
			alice := f.As("alice")
			Eventually(ctx, func() error { return alice.Create(ctx, build.FailedCreate(f.db, message)) }).Should(Succeed())
			version, raises, begun := f.version(ctx, f.db), 0, time.Now()
			for range 300 {
				Expect(alice.Create(ctx, build.FailedCreate(f.db, message))).To(Succeed())
				if now := f.version(ctx, f.db); now != version {
					version, raises = now, raises+1
				}
			}
			// A raise is seen as two changes: of spec, and of the count.
			Expect(raises).To(BeNumerically("<=", int(time.Since(begun).Seconds()*10)+10))
			Expect(shop.share(ctx, shop.web)).To(Equal(before))
			Expect(shop.version(ctx, shop.web)).To(Equal(writes))
		})

	// fillNew gives four namespaces five Secrets each from source, within a budget of 22, and then adds a namespace.
	fillNew := func(ctx SpecContext, f *fixture, source func(name string) client.Object) {
		GinkgoHelper()
		for i := range 5 {
			Expect(f.Admin().Create(ctx, source(fmt.Sprint(f.root, "-s", i)))).To(Succeed())
		}
		count := func() int { return f.countSecrets(ctx) }
		Eventually(ctx, count).Should(Equal(20))
		f.setHard(ctx, amounts("count/secrets", "22"))
		f.awaitShares(ctx, f.root, f.web, f.api, f.db)
		late := f.root + "-late"
		f.addSub(ctx, f.root, late)
		Eventually(ctx, count).Should(Equal(22))
		Consistently(ctx, count).WithTimeout(5 * time.Second).Should(Equal(22))
	}

	It("QUOTA-44 copies from above come into a new namespace when its share is counted, up to the budget", func(ctx SpecContext) {
		f := plant(ctx, world, nil)
		fillNew(ctx, f, func(name string) client.Object {
			return build.Source(build.Secret(f.root, name, "x"), v1alpha1.ModeUpdate)
		})
	})

	It("QUOTA-45 the copies of a ResourceDistribution come into a new namespace when its share is counted, up to the budget",
		func(ctx SpecContext) {
			f := plant(ctx, world, nil)
			fillNew(ctx, f, func(name string) client.Object {
				rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: name}}
				rd.Spec.Targets.Trees = []v1alpha1.NamespaceName{v1alpha1.NamespaceName(f.root)}
				rd.Spec.Resource.Raw = fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": %q}}`, name)
				DeferCleanup(func(ctx SpecContext) { Expect(f.Admin().Delete(ctx, rd)).To(Succeed()) })
				return rd
			})
		})

	It("QUOTA-27 a sudoer may not change or delete a share, write its status, or make one of its name elsewhere in the tree",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(10))
			bob := f.Sudo("bob", f.root)
			Eventually(ctx, func() error {
				return bob.Get(ctx, client.ObjectKey{Namespace: f.web, Name: budget.QuotaName}, &corev1.ResourceQuota{})
			}).
				Should(Succeed())
			read := func() *corev1.ResourceQuota {
				q, err := f.quota(ctx, f.web)
				Expect(err).NotTo(HaveOccurred())
				return q
			}
			refused := func(what string, try func() error) {
				GinkgoHelper()
				Eventually(ctx, try).Should(MatchError(ContainSubstring("is the share that the operator gives a namespace")), what)
			}
			refused("spec", func() error {
				q := read()
				q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("1000")
				return bob.Update(ctx, q)
			})
			refused("label", func() error {
				q := read()
				q.Labels = map[string]string{"a": "b"}
				return bob.Update(ctx, q)
			})
			refused("status", func() error {
				q := read()
				q.Status.Hard[corev1.ResourcePods] = resource.MustParse("1000")
				return bob.Status().Update(ctx, q)
			})
			refused("delete", func() error { return bob.Delete(ctx, read()) })
			refused("deletecollection", func() error { return bob.DeleteAllOf(ctx, &corev1.ResourceQuota{}, client.InNamespace(f.web)) })
			g := plantNamed(ctx, world, "plain", nil)
			carol := g.Sudo("bob", g.root)
			refused("create", func() error { return carol.Create(ctx, shareIn(g.web, budget.QuotaName)) })
		})

	It("QUOTA-28 with the operator's token, a ResourceQuota of another name, one with scopes, and one in a namespace of no tree are refused; "+
		"QUOTA-78 so is a copy of one while ResourceQuota is not a configured kind",
		func(ctx SpecContext) {
			f, bare := plant(ctx, world, nil), unique("bare")
			Expect(f.Admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bare}})).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(f.Admin().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bare}})).To(Succeed())
			})
			thief := f.As(controlplane.Operator)
			scoped := shareIn(f.web, budget.QuotaName)
			scoped.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
			copied := shareIn(bare, "copied")
			copied.Labels = map[string]string{v1alpha1.LabelInheritedFrom: f.root}
			for what, q := range map[string]*corev1.ResourceQuota{
				"may write only the ResourceQuota hrq.tenancy.warren.dev":      shareIn(f.web, "other"),
				"has neither scopes nor owners":                                scoped,
				"may write ResourceQuotas only in managed namespaces":          shareIn(bare, budget.QuotaName),
				"the operator may write ResourceQuotas only in managed namesp": copied,
				"may not write in namespace kube-system":                       shareIn("kube-system", budget.QuotaName),
			} {
				Expect(thief.Create(ctx, q)).To(MatchError(ContainSubstring(what)))
			}
			By("QUOTA-78 one that looks like a copy")
			planted := shareIn(f.web, "planted")
			planted.Labels = map[string]string{v1alpha1.LabelInheritedFrom: f.root}
			Expect(thief.Create(ctx, planted)).To(MatchError(ContainSubstring("may write only the ResourceQuota hrq.tenancy.warren.dev")))
			_, err := f.quota(ctx, f.web)
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
			Expect(thief.Create(ctx, shareIn(f.web, budget.QuotaName))).To(Succeed(), "the operator itself may")
			Eventually(ctx, func() bool {
				_, err := f.quota(ctx, f.web)
				return apierrors.IsNotFound(err)
			}).Should(BeTrue(), "and it deletes what no limit asks for")
		})
})

// version is the resourceVersion of a share.
func (f *fixture) version(ctx context.Context, namespace string) string {
	GinkgoHelper()
	q, err := f.quota(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	return q.ResourceVersion
}

func shareIn(namespace, name string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}}}
}

func budgetRefusal(requested string) string {
	return fmt.Sprintf("pods \"x\" is forbidden: exceeded quota: %s, requested: %s, used: pods=0, limited: pods=0", budget.QuotaName,
		requested)
}

var _ = Describe("a HierarchicalResourceQuota", func() {
	It("QUOTA-33 a HierarchicalResourceQuota limits its namespace and all below, and nothing beside", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		f.narrow(ctx, f.web, "team", pods(4))
		r := f.record(ctx)
		f.fill(ctx, 4, f.api)
		Consistently(ctx, func() bool { return isRefused(f.create(ctx, f.web)) }).WithPolling(longPause).WithTimeout(3 * time.Second).
			Should(BeTrue())
		f.fill(ctx, 10, f.db)
		r.holds(10)
		Eventually(ctx, func(g Gomega) {
			is := f.team(ctx, f.web)
			g.Expect(is.Status.Used.Pods().String()).To(Equal("4"))
			g.Expect(is.Status.Free.Pods().String()).To(Equal("0"))
			g.Expect(v1alpha1.FindCondition(is.Status.Conditions, v1alpha1.ConditionReady)).To(HaveField("Reason", "Enforced"))
		}).Should(Succeed())
	})

	It("QUOTA-34 a HierarchicalResourceQuota larger than the tenant's budget says that the smaller holds; in no tree it is NotInTree",
		func(ctx SpecContext) {
			f := plant(ctx, world, pods(10))
			f.narrow(ctx, f.web, "team", pods(40))
			f.awaitTeam(ctx, f.web, "Enforced", "hard.pods 40 is more than tenant "+f.root+" has (10): the smaller one holds")
			bare := unique("bare")
			Expect(f.Admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bare}})).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(f.Admin().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bare}})).To(Succeed())
			})
			f.narrow(ctx, bare, "team", pods(4))
			f.awaitTeam(ctx, bare, "NotInTree", "the namespace is in no tree")
		})

	It("QUOTA-41 an empty HierarchicalResourceQuota keeps no rights back; of nine in a namespace, the first eight by name count",
		func(ctx SpecContext) {
			f := plant(ctx, world, nil)
			f.narrow(ctx, f.web, "team", nil)
			f.awaitTeam(ctx, f.web, "Enforced", "")
			fresh, rights := f.root+"-new", &rbacv1.RoleBindingList{}
			f.addSub(ctx, f.web, fresh)
			Eventually(ctx, func() []rbacv1.RoleBinding {
				Expect(f.Admin().List(ctx, rights, client.InNamespace(fresh))).To(Succeed())
				return rights.Items
			}).ShouldNot(BeEmpty())
			for n := range 8 {
				f.narrow(ctx, f.web, fmt.Sprintf("part-%d", n), pods(5))
			}
			f.awaitTeam(ctx, f.web, "LimitExceeded", "only the first 8")
		})

	It("QUOTA-35 a part of a tree that is full and asks for ever keeps nothing from the rest", func(ctx SpecContext) {
		f := plant(ctx, world, pods(10))
		f.narrow(ctx, f.web, "team", pods(2))
		f.fill(ctx, 2, f.web)
		f.deploy(ctx, f.web, 20)
		f.deploy(ctx, f.db, 6)
		f.awaitPods(ctx, f.db, 6)
	})
})

// narrow makes a HierarchicalResourceQuota.
func (f *fixture) narrow(ctx context.Context, namespace, name string, hard v1alpha1.Budget) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, &v1alpha1.HierarchicalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.HierarchicalResourceQuotaSpec{Hard: hard}})).To(Succeed())
}

func (f *fixture) team(ctx context.Context, namespace string) *v1alpha1.HierarchicalResourceQuota {
	GinkgoHelper()
	is := &v1alpha1.HierarchicalResourceQuota{}
	Expect(f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: "team"}, is)).To(Succeed())
	return is
}

func (f *fixture) awaitTeam(ctx context.Context, namespace, reason, message string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		ready := v1alpha1.FindCondition(f.team(ctx, namespace).Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(reason))
		g.Expect(strings.Contains(ready.Message, message)).To(BeTrue(), ready.Message)
	}).Should(Succeed())
}
