package informers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

func over(set *watchset.NamespaceSet) watchset.Request {
	return watchset.Request{Resource: secrets, Scope: watchset.Namespaces(set)}
}

var _ = Describe("namespaces", func() {
	It("INF-I30 with rights in a and b, Auto over a, b and c has a Forbidden cluster part; a and b are Synced, c Forbidden; List returns "+
		"PartialError of c; INF-I31 with the right in the cluster, one watch replaces those of namespaces; objects in c give Create events, "+
		"others none; no reader misses an object; INF-I32 when the right in the cluster is revoked, a and b are again Synced, c Forbidden, "+
		"without a Delete event", func(ctx SpecContext) {
		w := prepare(30, patient())
		w.observes(ctx)
		w.run()
		names := w.namespaces(ctx, "a", "b", "c")
		for _, namespace := range names {
			create(ctx, secret(namespace, "in-"+namespace))
		}
		w.grant(ctx, names[0], "see", rule(secrets, see))
		w.grant(ctx, names[1], "see", rule(secrets, see))
		told := w.listen(secrets)
		l := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Auto(watchset.NewNamespaceSet(names...))})
		partly := func() {
			GinkgoHelper()
			for i, want := range []watchset.State{watchset.Synced, watchset.Synced, watchset.Forbidden} {
				Eventually(l.StatusFor).WithArguments(names[i]).Should(HaveField("State", want))
			}
			all, err := l.List("", nil)
			Expect(all).To(HaveLen(2))
			var partial *watchset.PartialError
			Expect(errors.As(err, &partial)).To(BeTrue())
			Expect(partial.Namespaces).To(HaveKeyWithValue(names[2], MatchError(apierrors.IsForbidden, "is a 403")))
			Expect(partial.Namespaces).To(HaveLen(1))
		}
		partly()
		Expect(w.Informers()).To(ContainElement(And(HaveField("State", watchset.Forbidden), HaveField("Scope.String()", "cluster"))))
		Eventually(told.seen).Should(ConsistOf("create in-"+names[0], "create in-"+names[1]))
		told.take()

		By("INF-I31: up")
		reading, enough := context.WithCancel(ctx)
		defer enough()
		missed := make(chan error, 1)
		go func() {
			defer close(missed)
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for reading.Err() == nil {
				if _, err := l.Get(key(names[0], "in-"+names[0])); err != nil {
					missed <- err
					return
				}
				<-tick.C
			}
		}()
		everywhere := w.grantAll(ctx, "everywhere", rule(secrets, see))
		becomes(l, watchset.Synced)
		Eventually(w.open(secrets.Resource, names[0])).Should(BeZero())
		Eventually(w.open(secrets.Resource, names[1])).Should(BeZero())
		Eventually(w.open(secrets.Resource, "")).Should(Equal(1), "one watch for the cluster")
		enough()
		Expect(missed).NotTo(Receive(HaveOccurred()), "a reader sees no gap")
		Eventually(told.seen).Should(ContainElement("create in-" + names[2]))
		Expect(told.seen()).NotTo(ContainElements("create in-" + names[0]))
		Expect(told.seen()).NotTo(ContainElement("create in-" + names[1]))
		create(ctx, secret(names[0], "event"))
		Eventually(told.seen).Should(ContainElement("create event"))
		remove(ctx, secret(names[0], "event"))
		Eventually(told.seen).Should(ContainElement("delete event"))
		told.take()

		By("INF-I32: down")
		remove(ctx, everywhere)
		Eventually(l.StatusFor).WithArguments(names[2]).Should(HaveField("State", watchset.Forbidden))
		partly()
		Consistently(told.seen).WithTimeout(test.Quiet(5 * time.Second)).Should(BeEmpty())
	})

	It("INF-I33 a lease of Auto on a cluster-scoped resource has a cluster part only", func(ctx SpecContext) {
		w := begin(33, blind())
		names := w.namespaces(ctx, "a")
		l := w.lease(watchset.Request{Resource: nodes, Scope: watchset.Auto(watchset.NewNamespaceSet(names...))})
		becomes(l, watchset.Forbidden)
		Expect(w.Informers()).To(HaveLen(1))
		w.grantAll(ctx, "nodes", rule(nodes, see))
		becomes(l, watchset.Synced)
		Expect(w.count("", nodes.Resource, names[0])).To(BeZero())
	})

	It("INF-I34 a namespace that joins the set is Synced; the watch of one that leaves is closed; a changed UID gives Delete events and a "+
		"new watch", func(ctx SpecContext) {
		w := begin(34, blind())
		names := w.namespaces(ctx, "a", "b", "d")
		for _, namespace := range names {
			w.grant(ctx, namespace, "see", rule(secrets, see))
			create(ctx, secret(namespace, "in-"+namespace))
		}
		told := w.listen(secrets)
		set := watchset.NewNamespaceSet()
		set.Replace(map[string]types.UID{names[0]: "1", names[1]: "1"})
		l := w.lease(over(set))
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveLen(2))
		set.Add(names[2], "1")
		Eventually(l.StatusFor).WithArguments(names[2]).Should(HaveField("State", watchset.Synced))
		Eventually(told.take).Should(ContainElement("create in-" + names[2]))
		set.Remove(names[1])
		Eventually(w.open("", names[1])).Should(BeZero())
		Eventually(l.StatusFor).WithArguments(names[1]).Should(HaveField("State", watchset.Pending))
		By("a UID changes")
		set.Add(names[0], "2")
		Eventually(told.seen).Should(ContainElement("delete in-" + names[0]))
		Eventually(w.counting("watch", secrets.Resource, names[0])).Should(Equal(2))
		Eventually(w.open("", names[0])).Should(Equal(1))
		becomes(l, watchset.Synced)
	})

	It("INF-I35 with cluster-wide rights, a deleted namespace that is kept in the set gives Delete events; the lease is Synced "+
		"and empty", func(ctx SpecContext) {
		w := begin(35, blind())
		w.grantAll(ctx, "see", rule(secrets, see))
		a := w.namespaces(ctx, "a")[0]
		create(ctx, secret(a, "s"))
		told := w.listen(secrets)
		l := w.lease(over(watchset.NewNamespaceSet(a)))
		becomes(l, watchset.Synced)
		gone(ctx, a)
		Eventually(told.seen).Should(ContainElement("delete s"))
		Expect(state(l)).To(Equal(watchset.Synced))
		Eventually(l.Status).Should(HaveField("Objects", 0))
	})

	// Without a check, the open watch of the old namespace would deliver the objects of the new one, in which the user has no right.
	It("INF-I36 when a namespace is deleted with its RoleBinding, and created again without it, the lease is Forbidden; no event comes from "+
		"the new one; INF-I37 while the leased namespace terminates, objects disappear one by one", func(ctx SpecContext) {
		w := prepare(36, patient())
		w.observes(ctx)
		w.run()
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		held := build.Held(secret(a, "held"))
		create(ctx, secret(a, "s"), held)
		told := w.listen(secrets)
		l := w.lease(over(watchset.NewNamespaceSet(a)))
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(ContainElements("create s", "create held"))
		rights := []client.Object{build.Role(a, "see"), build.RoleBinding(a, "see", "")}
		for _, right := range rights { // held, to be deleted last: without them no event is delivered
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(right), right)).To(Succeed())
			Expect(admin.Update(ctx, build.Held(right))).To(Succeed())
		}
		remove(ctx, build.Namespace(a))
		By("INF-I37: while it goes, objects vanish one by one")
		Eventually(told.seen).Should(ContainElement("delete s"))
		for _, right := range rights {
			letGo(ctx, right)
		}
		Expect(told.seen()).NotTo(ContainElement("delete held"))
		By("INF-I36: with its RoleBinding the right is gone")
		becomes(l, watchset.Forbidden)
		letGo(ctx, held)
		absent(ctx, a)
		told.take()
		create(ctx, build.Namespace(a), secret(a, "foreign"))
		Consistently(told.seen).WithTimeout(test.Quiet(5 * time.Second)).Should(BeEmpty())
		Expect(state(l)).To(Equal(watchset.Forbidden))
		Expect(w.open("", a)()).To(BeZero())
	})

	// With cluster-wide rights, a namespace that does not exist can be followed.
	It("INF-I38 of 600 namespaces at MaxNamespaces 500, 100 are Pending with ErrLimit, as watchset_limited says; when 50 leave the set, 50 "+
		"Pending ones become Synced", func(ctx SpecContext) {
		o := blind()
		registry := prometheus.NewRegistry()
		o.Registerer = registry
		w := begin(38, o)
		w.grantAll(ctx, "see", rule(secrets, see))
		var names []string
		for i := range 600 {
			names = append(names, w.ns(fmt.Sprintf("%03d", i)))
		}
		set := watchset.NewNamespaceSet(names...)
		l := w.lease(over(set))
		counts := func() map[watchset.State]int {
			n := map[watchset.State]int{}
			for _, name := range names {
				n[l.StatusFor(name).State]++
			}
			return n
		}
		Eventually(counts).Should(Equal(map[watchset.State]int{watchset.Synced: 500, watchset.Pending: 100}))
		for _, name := range names[500:] {
			Expect(l.StatusFor(name).Err).To(MatchError(watchset.ErrLimit))
		}
		Expect(l.Wait(ctx)).To(BeAssignableToTypeOf(&watchset.PartialError{}))
		Eventually(value).WithArguments(registry, "watchset_limited").Should(BeEquivalentTo(100))
		rest := map[string]types.UID{}
		for _, name := range names[50:] {
			rest[name] = ""
		}
		set.Replace(rest)
		Eventually(func(g Gomega) { // as many are Synced as before, but others
			for i, name := range names {
				want := watchset.Synced
				if i < 50 || i >= 550 {
					want = watchset.Pending
				}
				g.Expect(l.StatusFor(name).State).To(Equal(want), name)
			}
		}).Should(Succeed())
		Eventually(value).WithArguments(registry, "watchset_limited").Should(BeEquivalentTo(50))
	})
})

// letGo removes the finalizer that build.Held has set, even if the namespace controller writes the object at the same time.
func letGo(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
}

// gone deletes a namespace and waits for its end.
func gone(ctx context.Context, name string) {
	GinkgoHelper()
	remove(ctx, build.Namespace(name))
	absent(ctx, name)
}

func absent(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() error { return admin.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}) }).
		Should(MatchError(apierrors.IsNotFound, "is a 404"))
}
