package informers_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a right", func() {
	It("INF-I05 with resourceNames [one] in the Role, a lease of Object(a, one) is Synced, with 1 object; those of Object(a, two) and of "+
		"Namespace(a) are Forbidden; INF-I06 a lease of an object that does not exist yet is Synced, and Get is NotFound; its creation is an "+
		"event", func(ctx SpecContext) {
		w := begin(5, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "one", rule(secrets, see, "one", "late"))
		create(ctx, secret(a, "one"), secret(a, "two"))
		object := func(name string) *watchset.Lease {
			return w.lease(watchset.Request{Resource: secrets, Scope: watchset.Object(a, name)})
		}
		one, two, all := object("one"), object("two"), w.lease(in(a))
		becomes(one, watchset.Synced)
		becomes(two, watchset.Forbidden)
		becomes(all, watchset.Forbidden)
		Expect(one.Status().Objects).To(Equal(1))
		Expect(two.Status().Err).
			To(MatchError(ContainSubstring(fmt.Sprintf(`secrets "two" in namespace %q are forbidden: missing list, watch`, a))))

		By("INF-I06: one that doesn't exist yet")
		told := w.listen(secrets)
		late := object("late")
		becomes(late, watchset.Synced)
		_, err := late.Get(key(a, "late"))
		Expect(err).To(MatchError(apierrors.IsNotFound, "is a 404"))
		create(ctx, secret(a, "late"))
		Eventually(told.seen).Should(ContainElement("create late"))
	})

	It("INF-I07 with verb get alone, a lease is Forbidden, Missing [list, watch], and List is IsForbidden", func(ctx SpecContext) {
		w := begin(7, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "get", rule(secrets, []string{"get"}))
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Expect(l.Status().Missing).To(Equal([]string{"list", "watch"}))
		_, err := l.List("", nil)
		Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
	})

	It("INF-I08 with verb list alone, a lease is Forbidden, Missing [watch], and never Synced; one watch is tried, then "+
		"reviews tell", func(ctx SpecContext) {
		w := begin(8, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "list", rule(secrets, []string{"list"}))
		create(ctx, secret(a, "s"))
		told := w.listen(secrets)
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Expect(l.Status().Missing).To(Equal([]string{"watch"}))
		Consistently(l.Status).WithTimeout(test.Quiet(5 * time.Second)).Should(HaveField("State", Not(Equal(watchset.Synced))))
		Expect(told.take()).To(BeEmpty())
		Expect(w.count("watch", secrets.Resource, "")).To(Equal(1), "reviews tell the rest")
	})

	It("INF-I09 with verb watch alone, a lease is Forbidden, Missing [list], after one watch and at most one "+
		"other state", func(ctx SpecContext) {
		o := blind()
		o.VerifyInterval = ptr.To(500 * time.Millisecond)
		w := begin(9, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "watch", rule(secrets, []string{"watch"}))
		states := w.states()
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Expect(l.Status().Missing).To(Equal([]string{"list"}))
		stays(l, watchset.Forbidden)
		Expect(w.count("watch", secrets.Resource, "")).To(Equal(1))
		Expect(enqueued(states)).To(Or(HaveExactElements("x"), HaveExactElements("x", "x")))
	})

	It("INF-I92 where resourceNames allow only the name of a field selector, the lease is Synced, in a namespace and in the cluster, also "+
		"after VerifyInterval", func(ctx SpecContext) {
		o := blind()
		o.VerifyInterval = ptr.To(500 * time.Millisecond)
		w := begin(92, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see-secret", rule(secrets, see, "s"))
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		w.grantAll(ctx, "see-config", rule(configMaps, see, "s"))
		named := fields.OneTermEqualSelector("metadata.name", "s")
		inside := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Namespace(a), FieldSelector: named})
		everywhere := w.lease(watchset.Request{Resource: configMaps, FieldSelector: named})
		for _, l := range []*watchset.Lease{inside, everywhere} {
			becomes(l, watchset.Synced)
		}
		for _, l := range []*watchset.Lease{inside, everywhere} {
			stays(l, watchset.Synced)
		}
	})

	It("INF-I10 without a right, a Forbidden lease costs at most 9 requests in a minute", func(ctx SpecContext) {
		w := begin(10, watchset.Options{WatchRBAC: watchset.Off})
		a := w.namespaces(ctx, "a")[0]
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Consistently(w.counting("", "", "")).WithTimeout(time.Minute).Should(BeNumerically("<=", 9))
		Expect(state(l)).To(Equal(watchset.Forbidden))
	})

	It("INF-I11 with rbac+, a Forbidden lease is Synced when a RoleBinding gives the right; States enqueues the owner once "+
		"per transition", func(ctx SpecContext) {
		w := prepare(11, patient())
		w.observes(ctx)
		w.run()
		a := w.namespaces(ctx, "a")[0]
		states := w.states()
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Eventually(func() []string { return enqueued(states) }).Should(HaveExactElements("x"))
		stays(l, watchset.Forbidden)
		w.grant(ctx, a, "see", rule(secrets, see))
		becomes(l, watchset.Synced)
		Eventually(func() []string { return enqueued(states) }).Should(HaveExactElements("x"))
		Consistently(states.Len).WithTimeout(test.Quiet(5 * time.Second)).Should(BeZero())
	})

	It("INF-I12 without rbac+, a Forbidden lease is Synced when the back-off expires next after the right is granted", func(ctx SpecContext) {
		o := blind()
		o.Backoff = watchset.Backoff{Initial: time.Second}
		w := begin(12, o)
		a := w.namespaces(ctx, "a")[0]
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Expect(l.Status().Retry).NotTo(BeZero())
		w.grant(ctx, a, "see", rule(secrets, see))
		becomes(l, watchset.Synced)
		Expect(l.Status().Retry).To(BeZero())
	})

	It("INF-I13 with rbac+, when the RoleBinding is deleted, the lease is Forbidden, its stream closed, Objects 0, and Get IsForbidden; "+
		"there are no Delete events", func(ctx SpecContext) {
		w := prepare(13, patient())
		w.observes(ctx)
		w.run()
		a := w.namespaces(ctx, "a")[0]
		_, binding := w.grant(ctx, a, "see", rule(secrets, see))
		for i := range 100 {
			create(ctx, secret(a, fmt.Sprint("s", i)))
		}
		told := w.listen(secrets)
		l := w.lease(in(a))
		becomes(l, watchset.Synced)
		Expect(l.Status().Objects).To(Equal(100))
		Eventually(told.seen).Should(HaveLen(100))
		told.take()
		remove(ctx, binding)
		becomes(l, watchset.Forbidden)
		Expect(l.Status().Objects).To(BeZero())
		Eventually(w.open(secrets.Resource, a)).Should(BeZero())
		_, err := l.Get(key(a, "s1"))
		Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Consistently(told.seen).WithTimeout(test.Quiet(5 * time.Second)).Should(BeEmpty())
	})

	// The server goes on delivering events into an open watch after the right is gone.
	It("INF-I14 without rbac+, a lease whose right is revoked is Forbidden after VerifyInterval; handlers never see what is "+
		"created then", func(ctx SpecContext) {
		o := blind()
		o.VerifyInterval, o.Backoff = ptr.To(2*time.Second), patient().Backoff
		w := begin(14, o)
		a := w.namespaces(ctx, "a")[0]
		_, binding := w.grant(ctx, a, "see", rule(secrets, see))
		told := w.listen(secrets)
		l := w.lease(in(a))
		becomes(l, watchset.Synced)
		remove(ctx, binding)
		w.counts(ctx, a, []rbacv1.PolicyRule{rule(secrets, see)}, false)
		before := w.count("review", "", a)
		create(ctx, secret(a, "at-once"))
		becomes(l, watchset.Forbidden)
		Expect(w.count("review", "", a)-before).To(BeNumerically("<=", 3),
			"an answer that was under way, and the next questions, after 2.4 s at most, about watch and list")
		told.take()
		create(ctx, secret(a, "later"))
		Consistently(told.seen).WithTimeout(test.Quiet(5 * time.Second)).Should(BeEmpty())
		Expect(w.open("", "")()).To(BeZero())
		_, err := l.List(a, nil)
		Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
	})

	It("INF-I15 with rbac+, losses and gains by edits of a Role, of a ClusterRole that a RoleBinding binds, and of an aggregated "+
		"ClusterRole are noticed", func(ctx SpecContext) {
		w := prepare(15, patient())
		w.observes(ctx)
		w.run()
		names := w.namespaces(ctx, "role", "clusterrole", "aggregated")
		edit := func(object client.Object, change func()) {
			GinkgoHelper()
			Eventually(func() error {
				if err := admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				change()
				return admin.Update(ctx, object)
			}).Should(Succeed())
		}
		both := func(namespace string, off, on func()) {
			GinkgoHelper()
			l := w.lease(in(namespace))
			becomes(l, watchset.Synced)
			off()
			becomes(l, watchset.Forbidden)
			on()
			becomes(l, watchset.Synced)
		}
		right := []rbacv1.PolicyRule{rule(secrets, see)}

		By("a Role")
		role, _ := w.grant(ctx, names[0], "see", right...)
		both(names[0], func() { edit(role, func() { role.Rules = nil }) }, func() { edit(role, func() { role.Rules = right }) })

		By("a ClusterRole that a RoleBinding binds")
		cr := build.ClusterRole(w.ns("bound"), right...)
		create(ctx, cr, build.RoleBinding(names[1], "bound", cr.Name, build.RBACUser(w.name)))
		w.may(ctx, names[1], right)
		both(names[1], func() { edit(cr, func() { cr.Rules = nil }) }, func() { edit(cr, func() { cr.Rules = right }) })

		By("an aggregated ClusterRole")
		part := build.Labelled(build.ClusterRole(w.ns("part"), right...), "aggregate-to", w.ns("whole"))
		whole := build.ClusterRole(w.ns("whole"))
		whole.AggregationRule =
			&rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"aggregate-to": whole.Name}}}}
		create(ctx, part, whole, build.RoleBinding(names[2], "whole", whole.Name, build.RBACUser(w.name)))
		w.may(ctx, names[2], right)
		both(names[2], func() { edit(part, func() { part.Rules = nil }) }, func() { edit(part, func() { part.Rules = right }) })
	})

	// Serial, because a change of ClusterRoles in another case affects the users of all cases.
	It("INF-I16 with rbac+, if one of two bindings, the other of op or its group, is deleted, a lease stays Synced; there are a review, its "+
		"repetition, no restart", Serial, func(ctx SpecContext) {
		w := prepare(16, patient())
		w.observes(ctx)
		w.run()
		for name, second := range map[string]rbacv1.Subject{"group": build.RBACGroup(w.name + "-group"), "self": build.RBACUser(w.name)} {
			a := w.namespaces(ctx, name)[0]
			_, binding := w.grant(ctx, a, "see", rule(secrets, see))
			other := build.RoleBinding(a, "other", "see", second)
			other.RoleRef.Kind = "Role"
			create(ctx, other)
			l := w.lease(in(a))
			becomes(l, watchset.Synced)
			before := w.count("review", "", a)
			remove(ctx, binding)
			Eventually(w.counting("review", "", a)).Should(BeNumerically(">", before), "it is looked at")
			stays(l, watchset.Synced)
			Expect(w.count("watch", secrets.Resource, a)).To(Equal(1), "and not started again")
			Expect(w.count("review", "", a)-before).To(BeNumerically("<=", 2), "one review of all rights there, and its repeat")
		}
	})

	It("INF-I17 with rbac+, 1,000 (`make test-long`; else 200) new RoleBindings cause at most 10 reviews in 5 s of the part in a; that in b "+
		"has neither review nor restart", Serial, func(ctx SpecContext) {
		w := prepare(17, patient())
		w.observes(ctx)
		w.run()
		names := w.namespaces(ctx, "busy", "calm", "elsewhere")
		w.grant(ctx, names[0], "see", rule(secrets, see))
		w.grant(ctx, names[1], "see", rule(secrets, see))
		busy, calm := w.lease(in(names[0])), w.lease(in(names[1]))
		becomes(busy, watchset.Synced)
		becomes(calm, watchset.Synced)
		calmFirst, busyFirst := w.rests("review", "", names[1]), w.rests("review", "", names[0])
		bindings := test.Many(1000, 200)
		var storm errgroup.Group
		storm.SetLimit(8)
		for i := range bindings {
			of := func(namespace, who string) func() error {
				return func() error {
					return admin.Create(ctx, build.RoleBinding(namespace, fmt.Sprint(who, i), "nobody", build.RBACUser(who)))
				}
			}
			storm.Go(of(names[0], w.name))
			storm.Go(of(names[i%len(names)], w.name+"-other"))
		}
		Expect(storm.Wait()).To(Succeed())
		Expect(w.rests("review", "", names[0])).To(BeNumerically(">", busyFirst))
		Expect(w.mostWithin(5*time.Second, "review", names[0])).To(BeNumerically("<=", 10),
			"in each 5 s, however long the machine takes for the bindings")
		Expect(w.count("review", "", names[1])).To(Equal(calmFirst), "no RoleBinding concerns another namespace, nor anybody but its subjects")
		Expect(w.count("watch", secrets.Resource, "")).To(Equal(2))
		Expect(state(calm)).To(Equal(watchset.Synced))
	})

	It("INF-I19 where the server refuses reviews, the back-off sends lists with limit=1; once the right is granted, the lease "+
		"is Synced", func(ctx SpecContext) {
		w := begin(19, blind())
		a := w.namespaces(ctx, "a")[0]
		w.refuseReviews() // of either kind
		l := w.lease(in(a))
		becomes(l, watchset.Forbidden)
		Eventually(w.counting("list", secrets.Resource, a)).Should(BeNumerically(">", 1))
		Expect(w.limits(secrets.Resource, a)).To(HaveEach("1"), "attempts at a list")
		w.grant(ctx, a, "see", rule(secrets, see))
		becomes(l, watchset.Synced)
		Expect(w.count("watch", secrets.Resource, a)).To(Equal(2))
	})

	It("INF-I20 when the right to watch RBAC is granted, its four watches begin at the back-off; when it is revoked, they end; other parts "+
		"are untouched", func(ctx SpecContext) {
		o := blind()
		o.WatchRBAC = watchset.WhereAllowed
		w := begin(20, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		l := w.lease(in(a))
		becomes(l, watchset.Synced)
		Expect(w.open("rolebindings", "")()).To(BeZero())
		observer := w.observes(ctx)
		kinds := []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
		for _, kind := range kinds {
			Eventually(w.open(kind, "")).Should(Equal(1))
		}
		By("it goes, and the streams are renewed")
		remove(ctx, observer)
		Eventually(func() int {
			w.cut()
			return w.open("rolebindings", "")()
		}).WithPolling(time.Second).Should(BeZero())
		becomes(l, watchset.Synced)
		Eventually(w.open(secrets.Resource, a)).Should(Equal(1))
		Expect(w.Informers()).To(HaveLen(1))
	})
})
