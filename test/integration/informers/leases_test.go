package informers_test

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
)

var _ = Describe("a lease", func() {
	It("INF-I01 a lease of Namespace(a), with the right, is Synced by one request, a watch that stays open, and "+
		"no review", func(ctx SpecContext) {
		w := begin(1, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		Expect(w.count("", "", "")).To(BeZero())
		l := w.lease(in(a))
		becomes(l, watchset.Synced)
		Expect(w.count("", "", "")).To(Equal(1), "one watch brings it all")
		Expect(w.count("review", "", "")).To(BeZero())
		Expect(w.open("", "")()).To(Equal(1))
		Expect(l.Wait(ctx)).To(Succeed())
	})

	It("INF-I02 50 leases share one watch while one of them is left; then, after IdleGrace, the watch, its series and goroutines end; "+
		"INF-I03 a lease that is taken again within IdleGrace is Synced at once, without a request", func(ctx SpecContext) {
		o := blind()
		registry := prometheus.NewRegistry()
		o.Registerer, o.IdleGrace = registry, ptr.To(2*time.Second)
		w := begin(2, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		before := goroutines("watchset.(*run)")
		var leases []*watchset.Lease
		for i := range 50 {
			l, err := w.Acquire(owner(fmt.Sprint(i)), in(a))
			Expect(err).NotTo(HaveOccurred())
			leases = append(leases, l)
		}
		for _, l := range leases {
			becomes(l, watchset.Synced)
		}
		Expect(w.count("", secrets.Resource, "")).To(Equal(1))
		Expect(w.Informers()).To(ConsistOf(HaveField("Leases", 50)))
		Expect(series(registry, "watchset_informers")).To(Equal(1))
		for _, l := range leases[1:] {
			l.Release()
		}
		Expect(w.open("", "")()).To(Equal(1))

		By("released and leased again: no request")
		leases[0].Release()
		Expect(w.Informers()).To(ConsistOf(HaveField("Leases", 0)))
		again := w.lease(in(a))
		Expect(state(again)).To(Equal(watchset.Synced))
		Consistently(w.open("", "")).WithTimeout(test.Quiet(3*time.Second) + time.Second).Should(Equal(1))
		Expect(w.count("", "", "")).To(Equal(1))

		By("the last one goes")
		again.Release()
		Eventually(w.open("", "")).Should(BeZero())
		Eventually(w.Informers).Should(BeEmpty())
		Eventually(series).WithArguments(registry, "watchset_informers").Should(BeZero())
		Eventually(series).WithArguments(registry, "watchset_starts_total").Should(BeZero())
		Eventually(goroutines).WithArguments("watchset.(*run)").Should(BeNumerically("<=", before))
	})

	It("INF-I04 leases that differ in form or label selector have watches of their own; equal Requests of other owners "+
		"share one", func(ctx SpecContext) {
		w := begin(4, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		create(ctx, secret(a, "one", "x", "1"), secret(a, "two", "x", "2"))
		request := func(form watchset.Form, selector string) watchset.Request {
			r := in(a)
			r.Form = form
			if selector != "" {
				r.LabelSelector = labels.SelectorFromSet(labels.Set{"x": selector})
			}
			return r
		}
		for _, r := range []watchset.Request{
			request(watchset.Metadata, ""), request(watchset.Full, ""), request(watchset.Metadata, "1"), request(watchset.Metadata, "2"),
		} {
			l := w.lease(r)
			becomes(l, watchset.Synced)
			other, err := w.Acquire(owner("y"), r)
			Expect(err).NotTo(HaveOccurred())
			Expect(state(other)).To(Equal(watchset.Synced))
			want := 1
			if r.LabelSelector == nil {
				want = 2
			}
			Expect(l.List("", nil)).To(HaveLen(want))
		}
		Expect(w.count("watch", secrets.Resource, "")).To(Equal(4))
	})

	It("INF-I41 when a CR names s2 in place of s1, the watch on s1 ends after the session's Commit, and s2 is watched; INF-I42 if that "+
		"reconciliation fails before Commit, s1 and s2 are both watched; INF-I43 Release(owner) ends the informers; an earlier session that "+
		"commits later, of an old CR of that name, releases no lease of the new one; INF-I44 when one of two owners of a Secret releases it, "+
		"the watch stays", func(ctx SpecContext) {
		o := blind()
		o.IdleGrace = ptr.To(100 * time.Millisecond)
		w := begin(41, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		create(ctx, secret(a, "s1"), secret(a, "s2"))
		reconcile := func(who, name string, commit bool) *watchset.Lease {
			GinkgoHelper()
			session := w.Session(owner(who))
			l, err := session.Acquire(watchset.Request{Resource: secrets, Scope: watchset.Object(a, name)})
			Expect(err).NotTo(HaveOccurred())
			Expect(l.Wait(ctx)).To(Succeed())
			if commit {
				session.Commit()
			}
			return l
		}
		s1 := reconcile("x", "s1", true)
		By("INF-I42: a reconciliation that fails releases nothing")
		s2 := reconcile("x", "s2", false)
		Consistently(w.open("", a)).WithTimeout(test.Quiet(5 * time.Second)).Should(Equal(2))
		By("INF-I41: one that succeeds releases what it didn't touch")
		reconcile("x", "s2", true)
		Eventually(w.open("", a)).Should(Equal(1))
		_, err := s1.Get(key(a, "s1"))
		Expect(err).To(MatchError(watchset.ErrReleased))
		Expect(s2.Get(key(a, "s2"))).NotTo(BeNil())
		By("of two sessions the later wins")
		earlier, later := w.Session(owner("x")), w.Session(owner("x"))
		_, err = later.Acquire(watchset.Request{Resource: secrets, Scope: watchset.Object(a, "s2")})
		Expect(err).NotTo(HaveOccurred())
		earlier.Commit()
		Expect(state(s2)).To(Equal(watchset.Synced))
		later.Commit()
		By("INF-I44: another owner needs the same")
		reconcile("y", "s2", true)
		w.Release(owner("y"))
		Consistently(w.open("", a)).WithTimeout(test.Quiet(2 * time.Second)).Should(Equal(1))
		Expect(w.count("watch", secrets.Resource, a)).To(Equal(2), "one for each Secret, ever")
		By("INF-I43: the owner is gone")
		w.Release(owner("x"))
		w.Release(owner("x"))
		Eventually(w.open("", a)).Should(BeZero())
		Eventually(w.Informers).Should(BeEmpty())
		By("or was made again with the same name before that")
		old := w.Session(owner("x"))
		_, err = old.Acquire(watchset.Request{Resource: secrets, Scope: watchset.Object(a, "s1")})
		Expect(err).NotTo(HaveOccurred())
		survivor := reconcile("x", "s2", true)
		old.Commit()
		Eventually(w.open("", a)).Should(Equal(1))
		Expect(state(survivor)).To(Equal(watchset.Synced))
	})

	It("INF-I49 a new Set has no informer; when its owner takes the same lease, that costs one request", func(ctx SpecContext) {
		first := begin(49, blind())
		a := first.namespaces(ctx, "a")[0]
		first.grant(ctx, a, "see", rule(secrets, see))
		becomes(first.lease(in(a)), watchset.Synced)
		first.stop()
		Eventually(first.ended).Should(Receive(BeNil()))
		close(first.ended)
		Expect(first.open("", "")()).To(BeZero())
		second := begin(49, blind())
		Expect(second.Informers()).To(BeEmpty())
		becomes(second.lease(in(a)), watchset.Synced)
		Expect(second.count("", "", "")).To(Equal(1))
	})

	It("INF-I50 when Start's context ends in the middle of 100 initial lists, Start returns, no goroutine or stream is left, and Acquire "+
		"returns ErrStopped", func(ctx SpecContext) {
		w := begin(50, watchset.Options{})
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		var last *watchset.Lease
		for i := range 100 {
			r := in(a)
			r.LabelSelector = labels.SelectorFromSet(labels.Set{"n": fmt.Sprint(i)})
			last = w.lease(r)
		}
		w.stop()
		Eventually(w.ended).Should(Receive(BeNil()))
		close(w.ended)
		for _, part := range []string{"watchset.(*run)", "watchset.(*Set)"} {
			Eventually(goroutines).WithArguments(part).Should(BeZero(), part)
		}
		Expect(w.open("", "")()).To(BeZero())
		_, err := w.Acquire(owner("x"), in(a))
		Expect(err).To(MatchError(watchset.ErrStopped))
		Expect(last.Wait(ctx)).To(MatchError(watchset.ErrStopped))
	})

	It("INF-I53 names of 63 and 253 characters, dots, and a field selector's value with comma, equals sign and backslash can be leased and "+
		"read", func(ctx SpecContext) {
		w := begin(53, blind())
		a := w.namespaces(ctx, strings.Repeat("n", 63-len(w.ns(""))))[0]
		Expect(a).To(HaveLen(63))
		w.grant(ctx, a, "see", rule(secrets, see))
		long := strings.TrimSuffix(strings.Repeat("name.", 51), ".")[:253]
		odd := secret(a, long)
		odd.Type = corev1.SecretType(`odd,type=x\y`)
		create(ctx, odd, secret(a, "other"))
		one := w.lease(watchset.Request{Resource: secrets, Scope: watchset.Object(a, long)})
		becomes(one, watchset.Synced)
		Expect(one.Get(key(a, long))).To(HaveField("GetName()", long))
		typed := in(a)
		typed.FieldSelector = fields.OneTermEqualSelector("type", string(odd.Type))
		l := w.lease(typed)
		becomes(l, watchset.Synced)
		Expect(l.List(a, nil)).To(ConsistOf(HaveField("GetName()", long)))
		typed.Scope = watchset.Object(a, "other")
		l = w.lease(typed)
		becomes(l, watchset.Synced)
		_, err := l.Get(key(a, "other"))
		Expect(err).To(MatchError(apierrors.IsNotFound, "is a 404"))
	})
})

// series counts the series of a metric.
func series(registry *prometheus.Registry, name string) (n int) {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == name {
			n = len(family.GetMetric())
		}
	}
	return n
}

// value is the value of a gauge without labels.
func value(registry *prometheus.Registry, name string) (v float64) {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == name {
			v = family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return v
}

// goroutines counts the goroutines that have part in their stack.
func goroutines(part string) (n int) {
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, part) {
			n++
		}
	}
	return n
}
