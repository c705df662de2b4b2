package informers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
)

// keeper is a Sink of one informer. It keeps the objects that Sink promises to deliver, and records calls that break these promises.
type keeper struct {
	mu       sync.Mutex
	brought  bool // Replace was called since the last state in which nothing is kept
	names    map[types.NamespacedName]bool
	replaced int
	now      watchset.Status
	states   []watchset.State
	breaches []string
}

// Replace implements watchset.Sink, and so do the next three.
func (k *keeper) Replace(_, _ string, all []client.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.brought, k.names = true, map[types.NamespacedName]bool{}
	k.replaced++
	for _, object := range all {
		k.names[client.ObjectKeyFromObject(object)] = true
	}
}

func (k *keeper) Put(object client.Object) {
	k.change(object, func(name types.NamespacedName) { k.names[name] = true })
}

func (k *keeper) Gone(object client.Object) {
	k.change(object, func(name types.NamespacedName) { delete(k.names, name) })
}

func (k *keeper) change(object client.Object, f func(types.NamespacedName)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.brought {
		k.breaches = append(k.breaches, fmt.Sprintf("an event of %s while %s", object.GetName(), k.now.State))
		return
	}
	f(client.ObjectKeyFromObject(object))
}

func (k *keeper) State(_ string, now watchset.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch now.State {
	case watchset.Synced:
		if !k.brought {
			k.breaches = append(k.breaches, "Synced before Replace")
		}
	case watchset.Pending, watchset.Forbidden, watchset.NotServed:
		k.brought, k.names = false, nil
	}
	if k.now.State != now.State {
		k.states = append(k.states, now.State)
	}
	k.now = now
}

func (k *keeper) status() watchset.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// holds returns the names that the keeper keeps.
func (k *keeper) holds() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	names := []string{}
	for name := range k.names {
		names = append(names, name.Name)
	}
	slices.Sort(names)
	return names
}

// takeStates returns the states that began since the last call.
func (k *keeper) takeStates() []watchset.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	states := k.states
	k.states = nil
	return states
}

func (k *keeper) becomes(want watchset.State, names ...string) {
	GinkgoHelper()
	Eventually(k.status).Should(HaveField("State", want))
	Eventually(k.holds).Should(ConsistOf(names))
	k.mu.Lock()
	defer k.mu.Unlock()
	Expect(k.breaches).To(BeEmpty())
}

func (k *keeper) timesReplaced() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.replaced
}

// labelled selects objects with a label, whatever its value.
func labelled(name string) labels.Selector {
	GinkgoHelper()
	exists, err := labels.NewRequirement(name, selection.Exists, nil)
	Expect(err).NotTo(HaveOccurred())
	return labels.NewSelector().Add(*exists)
}

var _ = Describe("a sink of the whole cluster", func() {
	It("INF-I86 two Sinks of a kind get their own objects and states; a stream that is opened again gives no call; an outage gives Degraded "+
		"with the cause, then Synced; INF-I86 a lost right is Forbidden with the missing verbs; list alone gives no call; with watch come "+
		"Replace and Synced; a released lease gets Pending and nothing more", func(ctx SpecContext) {
		o := patient()
		o.DegradedAfter = 5 * time.Second // longer than a list after a very short stream, with its back-off
		w := prepare(86, o)
		w.observes(ctx)
		granted := w.grantAll(ctx, "see", rule(secrets, see))
		w.run()
		a := w.namespaces(ctx, "a")[0]
		create(ctx, secret(a, "source", "op86-source", "x"), secret(a, "copy", "op86-copy", "x"), secret(a, "other"))
		sources, copies := &keeper{}, &keeper{}
		leases := map[string]*watchset.Lease{}
		for label, k := range map[string]*keeper{"op86-source": sources, "op86-copy": copies} {
			leases[label] = w.lease(watchset.Request{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), LabelSelector: labelled(label), Sink: k})
		}
		for k, name := range map[*keeper]string{sources: "source", copies: "copy"} {
			k.becomes(watchset.Synced, name)
			Expect(k.takeStates()).To(HaveExactElements(watchset.Syncing, watchset.Synced))
			Expect(k.status().Resource).To(Equal(secrets))
		}

		By("a stream that is opened again says nothing")
		create(ctx, secret(a, "soon", "op86-source", "x")) // the reflector lists anew after a short stream without an event
		sources.becomes(watchset.Synced, "source", "soon")
		w.cut()
		Eventually(w.counting("watch", secrets.Resource, "")).Should(Equal(4))
		create(ctx, secret(a, "late", "op86-source", "x"))
		sources.becomes(watchset.Synced, "source", "soon", "late")
		Expect(sources.timesReplaced()).To(Equal(1))
		Expect(sources.takeStates()).To(BeEmpty())

		By("a server that is away for long")
		w.setDown(true)
		w.cut()
		copies.becomes(watchset.Degraded, "copy")
		Eventually(copies.status).Should(HaveField("Err", MatchError(ContainSubstring("connection refused"))))
		remove(ctx, secret(a, "copy"))
		w.setDown(false)
		copies.becomes(watchset.Synced)
		sources.becomes(watchset.Synced, "source", "soon", "late")
		for _, k := range []*keeper{sources, copies} {
			Expect(k.takeStates()).To(HaveExactElements(watchset.Degraded, watchset.Synced))
		}

		By("a right that is lost")
		remove(ctx, granted)
		for _, k := range []*keeper{sources, copies} {
			k.becomes(watchset.Forbidden)
			Expect(k.status().Err).To(MatchError(HavePrefix("secrets cluster-wide are forbidden: missing list, watch")))
			Expect(k.status().Resource).To(Equal(secrets))
		}
		By("a list without a watch")
		replaced, reviews := sources.timesReplaced(), w.count("review", secrets.Resource, "")
		half := w.grantAll(ctx, "list", rule(secrets, []string{"list"}))
		Eventually(w.counting("review", secrets.Resource, "")).Should(BeNumerically(">", reviews))
		Consistently(sources.timesReplaced).WithTimeout(test.Quiet(5 * time.Second)).Should(Equal(replaced))
		By("both")
		w.grantAll(ctx, "again", rule(secrets, see))
		sources.becomes(watchset.Synced, "source", "soon", "late")
		copies.becomes(watchset.Synced)
		remove(ctx, half)

		By("a lease that is released")
		leases["op86-copy"].Release()
		copies.becomes(watchset.Pending)
		create(ctx, secret(a, "last", "op86-source", "x", "op86-copy", "x"))
		sources.becomes(watchset.Synced, "source", "soon", "late", "last")
		copies.becomes(watchset.Pending)
	})

	It("INF-I88 4 kinds with 2 Sinks each cost 8 streams and discovery, but no list or review; when one kind's right is lost, it alone is "+
		"Forbidden and called", func(ctx SpecContext) {
		const many = 600 // more than a page
		w := prepare(88, watchset.Options{WatchRBAC: watchset.WhileForbidden})
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		roles, bindings := rbacv1.SchemeGroupVersion.WithResource("roles"), rbacv1.SchemeGroupVersion.WithResource("rolebindings")
		w.grantAll(ctx, "see", rule(secrets, see), rule(configMaps, see), rule(roles, see))
		last := w.grantAll(ctx, "bindings", rule(bindings, see))
		a := w.namespaces(ctx, "a")[0]
		plantLabelled(ctx, a, "op88-copy", many)
		w.run()
		keepers := map[schema.GroupVersionKind][]*keeper{}
		for _, kind := range []schema.GroupVersionKind{
			{Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}, {Group: rbacv1.GroupName, Kind: "Role"}, {Group: rbacv1.GroupName, Version: "v1",
				Kind: "RoleBinding"},
		} {
			for _, label := range []string{"op88-source", "op88-copy"} {
				k := &keeper{}
				keepers[kind] = append(keepers[kind], k)
				_, err := w.Acquire(watchset.Static(kind.Kind+label), watchset.Request{Kind: kind, LabelSelector: labelled(label), Sink: k})
				Expect(err).NotTo(HaveOccurred())
			}
		}
		for kind, both := range keepers {
			both[0].becomes(watchset.Synced)
			Eventually(both[1].status).Should(HaveField("State", watchset.Synced))
			Expect(both[1].holds()).To(HaveLen(map[string]int{"Secret": many}[kind.Kind]))
		}
		Consistently(w.counting("", "", "")).WithTimeout(test.Quiet(5 * time.Second)).Should(Equal(8 + w.count("discover", "", "")))
		Expect(w.open("", "")()).To(Equal(8))
		Expect(w.count("list", "", "") + w.count("review", "", "")).To(BeZero())
		Expect(w.count("discover", "", "")).To(BeNumerically("<=", 4), "2 groups, 2 group versions")
		AddReportEntry("requests of discovery", w.count("discover", "", ""))

		By("a right that is lost is missed once the stream is opened again, and costs no other kind anything")
		before := w.count("", "", "")
		remove(ctx, last)
		w.counts(ctx, "", []rbacv1.PolicyRule{rule(bindings, see)}, false) // else the API server may open the stream again
		w.cut()
		for kind, both := range keepers {
			for _, k := range both {
				if kind.Kind == "RoleBinding" {
					k.becomes(watchset.Forbidden)
					continue
				}
				Expect(k.status().State).To(Equal(watchset.Synced))
				Expect(k.timesReplaced()).To(Equal(1))
			}
		}
		AddReportEntry("requests after the loss", w.count("", "", "")-before)
	})
})

// plantLabelled makes Secrets with a label.
func plantLabelled(ctx context.Context, namespace, label string, n int) {
	GinkgoHelper()
	makeMany(n, func(i int) error { return admin.Create(ctx, secret(namespace, fmt.Sprint("s", i), label, "x")) })
}
