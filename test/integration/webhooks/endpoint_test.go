package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("Webhooks that nobody serves", Ordered, func() {
	var f *fixture

	BeforeAll(func(ctx SpecContext) {
		f = furnish(ctx, start(ctx, devcluster.Options{}))
		// From now on the operator works without serving webhooks, and the API server still calls them.
		_, err := f.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Operator.Sound()).To(Succeed())
		f.Operator, err = devcluster.StartOperator(ctx, devcluster.OperatorOptions{
			Kubeconfig: f.Kubeconfig(controlplane.Operator), Dir: filepath.Join(f.Dir, "without-webhooks"),
		})
		Expect(err).NotTo(HaveOccurred())
	})

	It("SEC-W1 HIER-D4 SUB-T14 while no process serves the webhooks, users at once label and delete namespaces, also one that "+
		"holds a HierarchyConfiguration, and write Secrets", func(ctx SpecContext) {
		f.othersWork(ctx, "w1")
		f.quick(ctx, "delete pay-web", func(ctx context.Context, i int) error {
			return f.Admin().Delete(ctx, build.Namespace(fmt.Sprintf("pay-web-w1-%d", i)))
		})
		f.drains(ctx, "holder-w1")
	})

	It("SEC-W2 HIER-D4 SUB-T14 while no process serves the webhooks, writes of specs of LNamespaces, SubNamespaces and "+
		"HierarchyConfigurations, and of a Namespace's type or parent fail: failed calling webhook; SEC-W2 a change of the metadata of an "+
		"LNamespace succeeds", func(ctx SpecContext) {
		for what, r := range f.askedAbout() {
			Expect(r(ctx)).To(MatchError(ContainSubstring("failed calling webhook")), what)
		}
		Expect(f.metadata(ctx)).To(Succeed())
	})

	It("SEC-W3 while the webhooks accept connections and never answer, what they do not check succeeds; so does the deletion of pay-web, "+
		"about which they are asked; SEC-W3 what they check fails within the timeout of its webhook, but a change of the metadata of an "+
		"LNamespace succeeds", func(ctx SpecContext) {
		calls := hang(f.WebhookPort)
		f.othersWork(ctx, "w3")
		Expect(calls.Load()).To(BeZero(), "a request was sent that doesn't concern Warren")

		Expect(f.Admin().Delete(ctx, build.Namespace("pay-web-w3"))).To(Succeed())
		Expect(calls.Load()).NotTo(BeZero())
		f.drains(ctx, "holder-w3")

		timeouts := map[string]string{"type=root on plain": "3s", "another parent": "3s", "a SubNamespace": "5s", "an LNamespace's spec": "5s",
			"a HierarchyConfiguration": "8s"}
		for what, r := range f.askedAbout() {
			Expect(r(ctx)).To(MatchError(And(ContainSubstring("failed calling webhook"), ContainSubstring("?timeout="+timeouts[what]))), what)
		}
		Expect(f.metadata(ctx)).To(Succeed())
	}, SpecTimeout(8*time.Minute))
})

// fixture is the fixture of the specification: tenant payments of alice, mia and bob, with pay-web; and namespace plain, where carol is
// cluster-admin.
type fixture struct{ *devcluster.World }

// furnish makes the fixture, with a pay-web and a holder for each case that deletes one.
func furnish(ctx context.Context, w *devcluster.World) *fixture {
	GinkgoHelper()
	tenant := build.Tenant("payments").Users("alice").Managers("mia").Sudoers("bob").Object()
	Expect(w.Admin().Create(ctx, tenant)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(tenant), tenant)).To(Succeed())
		ready := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Status).To(Equal(metav1.ConditionTrue), ready.Message)
	}).Should(Succeed())
	Expect(w.Admin().Create(ctx, build.Root("holder-w1"))).To(Succeed())
	Expect(w.Admin().Create(ctx, build.Root("holder-w3"))).To(Succeed())
	subs := map[string]string{
		"pay-web": "payments", "pay-web-w1-0": "payments", "pay-web-w1-1": "payments", "pay-web-w1-2": "payments", "pay-web-w3": "payments",
		"held-w1-0": "holder-w1", "held-w1-1": "holder-w1", "held-w3-0": "holder-w3", "held-w3-1": "holder-w3",
	}
	for name, parent := range subs {
		Eventually(w.Admin().Create).WithArguments(ctx, build.SubNamespace(parent, name)).Should(Succeed())
	}
	for name, parent := range subs {
		Eventually(func(g Gomega) {
			namespace := build.Namespace(name)
			g.Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			g.Expect(namespace.Labels).To(HaveKeyWithValue(v1alpha1.TreeLabel(parent), "1"))
		}).Should(Succeed())
	}
	for _, parent := range []string{"holder-w1", "holder-w3"} {
		Expect(client.IgnoreAlreadyExists(w.Admin().Create(ctx, build.Hierarchy(parent)))).To(Succeed())
	}
	f := &fixture{w}
	f.plain(ctx, "plain")
	f.may(ctx, "alice", build.Namespace("payments"))
	f.may(ctx, "mia", build.Tenant("payments").Object())
	return f
}

// plain makes a namespace outside of the forest that is carol's.
func (f *fixture) plain(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, build.Namespace(name))).To(Succeed())
	Expect(f.Admin().Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "carol"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "carol"}},
	})).To(Succeed())
	f.may(ctx, "carol", build.Namespace(name))
}

// may waits until the API server's authorizer lets somebody read an object: it learns of a binding a moment after it is written.
func (f *fixture) may(ctx context.Context, user string, object client.Object) {
	GinkgoHelper()
	Eventually(func() error { return f.As(user).Get(ctx, client.ObjectKeyFromObject(object), object) }).Should(Succeed(),
		"the rights of %s", user)
}

// askedAbout are requests that the webhooks check. All are dry runs.
func (f *fixture) askedAbout() map[string]request {
	return map[string]request{
		"type=root on plain": func(ctx context.Context) error {
			return f.Admin().Patch(ctx, build.Namespace("plain"), labelled(v1alpha1.LabelType, v1alpha1.TypeRoot), client.DryRunAll)
		},
		"another parent": func(ctx context.Context) error {
			return f.Admin().Patch(ctx, build.Namespace("pay-web"), labelled(v1alpha1.LabelParent, "holder-w3"), client.DryRunAll)
		},
		"a SubNamespace": func(ctx context.Context) error {
			return f.As("alice").Create(ctx, build.SubNamespace("payments", "pay-new"), client.DryRunAll)
		},
		"a HierarchyConfiguration": func(ctx context.Context) error {
			return f.Admin().Create(ctx, build.Hierarchy("plain", build.Below("holder-w3")), client.DryRunAll)
		},
		"an LNamespace's spec": func(ctx context.Context) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"users":[{"kind":"User","name":"dave"}]}}`))
			return f.As("mia").Patch(ctx, build.Tenant("payments").Object(), patch, client.DryRunAll)
		},
	}
}

// metadata changes an LNamespace in a way for which no webhook is called.
func (f *fixture) metadata(ctx context.Context) error {
	return f.As("mia").Patch(ctx, build.Tenant("payments").Object(),
		labelled("example.com/seen", strconv.FormatInt(time.Now().UnixNano(), 10)))
}

// othersWork sends requests that don't concern Warren's webhooks, each several times.
func (f *fixture) othersWork(ctx context.Context, key string) {
	GinkgoHelper()
	plain := func(i int) string { return fmt.Sprintf("plain-%s-%d", key, i) }
	for i := range attempts {
		f.plain(ctx, plain(i))
	}
	carol, alice := f.As("carol"), f.As("alice")
	value := func(i int) client.Patch { return labelled("example.com/"+key, strconv.Itoa(i)) }
	f.quick(ctx, "label plain", func(ctx context.Context, i int) error {
		return carol.Patch(ctx, build.Namespace(plain(i)), value(i))
	})
	f.quick(ctx, "label pay-web", func(ctx context.Context, i int) error {
		return f.Admin().Patch(ctx, build.Namespace("pay-web"), value(i))
	})
	secret := func(i int) *corev1.Secret { return build.Secret("payments", fmt.Sprintf("s-%s-%d", key, i), "v") }
	f.quick(ctx, "create a Secret", func(ctx context.Context, i int) error { return alice.Create(ctx, secret(i)) })
	f.quick(ctx, "label a Secret", func(ctx context.Context, i int) error { return alice.Patch(ctx, secret(i), value(i)) })
	f.quick(ctx, "delete a Secret", func(ctx context.Context, i int) error { return alice.Delete(ctx, secret(i)) })
	f.quick(ctx, "delete plain", func(ctx context.Context, i int) error {
		return carol.Delete(ctx, build.Namespace(plain(i)))
	})
	for i := range attempts {
		f.gone(ctx, plain(i))
	}
}

// attempts of a request, of which the quickest counts: a busy machine may hold up one of them.
const attempts = 3

// quick checks that every attempt works, and that the API server waits for no webhook, which would take it 3 s.
func (f *fixture) quick(ctx context.Context, what string, do func(ctx context.Context, attempt int) error) {
	GinkgoHelper()
	best := time.Hour
	for i := range attempts {
		began := time.Now()
		Expect(do(ctx, i)).To(Succeed(), what)
		best = min(best, time.Since(began))
	}
	Expect(best).To(BeNumerically("<", 2500*time.Millisecond), what)
}

// drains deletes a namespace that holds SubNamespaces and a HierarchyConfiguration, and waits until it is gone.
func (f *fixture) drains(ctx context.Context, name string) {
	GinkgoHelper()
	subs := &v1alpha1.SubNamespaceList{}
	Expect(f.Admin().List(ctx, subs, client.InNamespace(name))).To(Succeed())
	Expect(subs.Items).To(HaveLen(2))
	Expect(f.Admin().Delete(ctx, build.Namespace(name))).To(Succeed())
	f.gone(ctx, name)
}

func (f *fixture) gone(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(f.Admin().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}))
	}).Should(BeTrue(), "namespace %s is still there", name)
}

// labelled is a patch that sets one label.
func labelled(key, value string) client.Patch {
	return client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))
}

// hang accepts connections at that port of this machine and never answers. It counts them.
func hang(port int) *atomic.Int32 {
	GinkgoHelper()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	Expect(err).NotTo(HaveOccurred())
	var calls atomic.Int32
	var open []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				calls.Add(1)
				open = append(open, connection)
			}
		}
	}()
	DeferCleanup(func() {
		_ = listener.Close()
		<-ended
		for _, connection := range open {
			_ = connection.Close()
		}
	})
	return &calls
}

// shape is every Namespace with its labels, and every object of ours.
func (f *fixture) shape(ctx context.Context) []string {
	GinkgoHelper()
	namespaces, tenants, subs := &corev1.NamespaceList{}, &v1alpha1.LNamespaceList{}, &v1alpha1.SubNamespaceList{}
	for _, list := range []client.ObjectList{namespaces, tenants, subs} {
		Expect(f.Admin().List(ctx, list)).To(Succeed())
	}
	var all []string
	for _, n := range namespaces.Items {
		all = append(all, fmt.Sprint("Namespace ", n.Name, n.Labels))
	}
	for _, t := range tenants.Items {
		all = append(all, "LNamespace "+t.Name)
	}
	for _, s := range subs.Items {
		all = append(all, "SubNamespace "+s.Namespace+"/"+s.Name)
	}
	return all
}

// quiet waits until the operator has written nothing for longer than a report waits, and returns the place from where on its writes count.
func (f *fixture) quiet(ctx context.Context) audit.Position {
	GinkgoHelper()
	var mark audit.Position
	Eventually(func(g Gomega) {
		from := mark
		var err error
		mark, err = f.Mark(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(from).NotTo(BeZero(), "the first look only marks")
		writes, err := f.Writes(ctx, from)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(writes).To(BeEmpty())
	}).WithPolling(3 * time.Second).Should(Succeed())
	return mark
}
