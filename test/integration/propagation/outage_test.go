package propagation_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/gate"
)

var _ = Describe("an operator behind a bad line", Ordered, func() {
	const answersLost = 50
	var (
		f *family
		g *gate.Gate
		s = build.Source(build.Secret("", "s", "1"), v1alpha1.ModeUpdate)
	)
	BeforeAll(func(ctx SpecContext) {
		w := start(ctx, setup{WithoutOperator: true, Webhooks: true})
		g = gate.New(w)
		g.StartOperator(ctx, w, setup{}.config())
		Eventually(ctx, func(ctx context.Context) error { // the API server learns of the certificate a moment later
			return w.Admin().Create(ctx, build.Root("rehearsed"), client.DryRunAll)
		}).Should(Succeed())
		f = grow(ctx, w)
		s.Namespace = f.acme
	})

	It("PROP-K6 when the answers to 50 POSTs of a fan-out are lost after the write, each namespace has one object, and no conflict is "+
		"reported", func(ctx SpecContext) {
		below := f.tree()
		for i := range answersLost {
			below = append(below, fmt.Sprint(f.prefix, "n", i))
			f.create(ctx, build.Child(fmt.Sprint(f.prefix, "n", i), f.acme))
		}
		var lost atomic.Int32
		g.LoseAnswers(func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") && lost.Add(1) <= answersLost
		})
		f.create(ctx, s)
		there := func(ctx context.Context) ([]string, error) { return f.standing(ctx, s, below...) }
		Eventually(ctx, there).Should(HaveLen(len(below)))
		f.copied(ctx, s, below...)
		Eventually(lost.Load).Should(BeNumerically(">=", answersLost))
		Consistently(ctx, f.events).WithArguments(s, v1alpha1.Reason("")).WithTimeout(test.Quiet(soon)).Should(BeEmpty())
		metrics, err := f.Operator.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics.Value("warren_propagation_conflicts", nil)).To(BeZero())
	})

	It("PROP-R4 HIER-R2 while the first list of sources, Namespaces or HierarchyConfigurations is late, readyz fails, and "+
		"nothing is deleted or reported; without the last two, webhooks refuse", func(ctx SpecContext) {
		rehearsal := func(ctx context.Context) error {
			return f.Admin().Create(ctx, build.Child(f.prefix+"late", f.acme), client.DryRunAll)
		}
		Eventually(ctx, rehearsal).Should(Succeed())
		for i, slow := range []func(*http.Request) bool{
			listsSecrets(v1alpha1.LabelPropagate), hasPath("/api/v1/namespaces"),
			hasPath("/apis/" + v1alpha1.GroupVersion.String() + "/hierarchyconfigurations"),
		} {
			_, err := f.Operator.Stop()
			Expect(err).NotTo(HaveOccurred())
			l := f.ledger(ctx, "secrets")
			g.HoldBack(slow)
			started := make(chan error, 1)
			go func() { started <- f.Operator.Start(ctx) }()
			Eventually(ctx, answers).WithArguments(f.Operator.HealthURL + "/healthz").Should(Equal(http.StatusOK))
			// less than 30 s: then a kind is Degraded
			Consistently(ctx, answers).WithArguments(f.Operator.HealthURL + "/readyz").WithTimeout(test.Quiet(20 * time.Second)).
				Should(Equal(http.StatusInternalServerError))
			if i > 0 {
				Expect(rehearsal(ctx)).NotTo(Succeed(), "nobody knows the forest yet")
			}
			g.Release()
			Eventually(started).Should(Receive(BeNil()))
			l.rests(ctx, counts{})
			Expect(f.reports(ctx, f.a1)).To(BeEmpty())
			Eventually(ctx, rehearsal).Should(Succeed())
		}
	})

	It("FLT-F14 while the first list of Namespaces or LNamespaces hangs, the operator is not Ready, deletes nothing, and reports no "+
		"namespace as halted; FLT-F14 while the first list of a kind's sources or copies hangs, no object of it is deleted; the operator is "+
		"Ready only once the kind is Degraded", func(ctx SpecContext) {
		// A Secret that is there, and one that was removed while the operator was down: nobody knows of either before the list comes.
		gone := build.Source(build.Secret(f.acme, "gone", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, gone)
		f.copied(ctx, gone, f.tree()...)
		for _, list := range []struct {
			what    string
			hangs   func(*http.Request) bool
			ofKind  bool
			removes bool
		}{
			{what: "namespaces", hangs: hasPath("/api/v1/namespaces")},
			{what: "LNamespaces", hangs: hasPath("/apis/" + v1alpha1.GroupVersion.String() + "/lnamespaces")},
			{what: "sources", hangs: listsSecrets(v1alpha1.LabelPropagate), ofKind: true, removes: true},
			{what: "copies", hangs: listsSecrets(v1alpha1.LabelInheritedFrom), ofKind: true},
		} {
			By(list.what)
			_, err := f.Operator.Stop()
			Expect(err).NotTo(HaveOccurred())
			if list.removes {
				f.remove(ctx, gone)
			}
			l := f.ledger(ctx, "secrets")
			g.HoldBack(list.hangs)
			started := make(chan error, 1)
			go func() { started <- f.Operator.Start(ctx) }()
			if list.ofKind {
				Eventually(started).Should(Receive(BeNil()), "it is ready once the kind is Degraded, and the list still hangs")
				Eventually(ctx, kindState).WithArguments(f.World, "Secret", "degraded").Should(Equal(1.0))
			} else {
				Consistently(started).WithTimeout(test.Quiet(time.Minute)).ShouldNot(Receive())
			}
			Consistently(ctx, func() int { return l.writes(ctx)["delete"] }).WithTimeout(test.Quiet(30 * time.Second)).Should(BeZero())
			Expect(f.reports(ctx, f.a1)).To(BeEmpty(), "it reports no namespace as halted")
			g.Release()
			if !list.ofKind {
				Eventually(started).Should(Receive(BeNil()))
			}
			if list.removes {
				f.absent(ctx, gone, f.tree()...)
			}
			f.copied(ctx, s, f.tree()...)
		}
	})
})

// hasPath returns a function that reports whether a request has that path.
func hasPath(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.URL.Path == path }
}

// listsSecrets returns a function that reports whether a request lists or watches the Secrets with that label.
func listsSecrets(label string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return hasPath("/api/v1/secrets")(r) && r.URL.Query().Get("labelSelector") == label
	}
}

// answers is the status code of a GET.
func answers(ctx context.Context, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

var _ = Describe("an operator that loses a right", Ordered, func() {
	var f *family
	BeforeAll(func(ctx SpecContext) { f = grow(ctx, start(ctx, setup{})) })

	It("PROP-I1 if the operator lacks a right that Role acme/r grants, a, a1 and b report Rejected with \"not currently held\"; other "+
		"Roles are copied", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "warren-manager"}}
		Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		held := role.DeepCopy().Rules
		change(ctx, f, role, func(role *rbacv1.ClusterRole) {
			for i := range role.Rules {
				role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return verb == "escalate" })
			}
		})
		unheld, other := build.Role(f.acme, "unheld", "create"), build.Role(f.acme, "other", "get")
		other.Rules[0].Resources = []string{"configmaps"}
		Eventually(ctx, func(ctx context.Context) error {
			return f.As(controlplane.Operator).Create(ctx, unheld.DeepCopy(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("not currently held")))
		f.create(ctx, unheld, other)
		f.copied(ctx, other, f.tree()...)
		for _, namespace := range f.tree() {
			Eventually(ctx, f.report).WithArguments(namespace).Should(And(
				HavePrefix(fmt.Sprintf("Rejected: Role %q from %q", "unheld", f.acme)), ContainSubstring("not currently held")))
		}
		f.staysAbsent(ctx, unheld, f.tree()...)
		change(ctx, f, role, func(role *rbacv1.ClusterRole) { role.Rules = held })
		f.copied(ctx, unheld, f.tree()...)
	})

	It("PROP-R5 while the right to list Secrets is missing, at the start or later, nothing is deleted, warren_config_kind reports "+
		"forbidden, and other kinds work; then copies are right within 30 s", func(ctx SpecContext) {
		source := func(name string) client.Object {
			s := build.Source(build.Secret(f.acme, name, "1"), v1alpha1.ModeUpdate)
			f.create(ctx, s)
			f.copied(ctx, s, f.tree()...)
			return s
		}
		allow := func(resources ...string) {
			role := &rbacv1.ClusterRole{}
			role.Name = "warren-kinds-configured"
			change(ctx, f, role, func(role *rbacv1.ClusterRole) {
				role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch", "create",
					"update", "delete"}}}
			})
			gathered := func(ctx context.Context) ([]string, error) {
				all := &rbacv1.ClusterRole{}
				err := f.Admin().Get(ctx, client.ObjectKey{Name: "warren-kinds"}, all)
				var names []string
				for _, rule := range all.Rules {
					names = append(names, rule.Resources...)
				}
				return names, err
			}
			if len(resources) == 1 {
				Eventually(ctx, gathered).ShouldNot(ContainElement("secrets"))
			} else {
				Eventually(ctx, gathered).Should(ContainElement("secrets"))
			}
		}
		forbidden := func(ctx context.Context) (float64, error) {
			metrics, err := f.Operator.Metrics(ctx)
			return metrics.Value("warren_config_kind", map[string]string{"kind": "Secret", "state": "forbidden"}), err
		}
		atStart, running := source("start"), source("running")
		l := f.ledger(ctx, "secrets")
		without := func(gone client.Object, name string) {
			f.remove(ctx, gone)
			Eventually(ctx, forbidden).Should(Equal(1.0))
			m := build.Source(build.ConfigMap(f.acme, name, "1"), v1alpha1.ModeUpdate)
			f.create(ctx, m)
			f.copied(ctx, m, f.tree()...)
			l.rests(ctx, l.writes(ctx))
			Expect(f.standing(ctx, gone, f.tree()...)).To(HaveLen(3))
			allow("configmaps", "secrets")
			Eventually(ctx, f.standing).WithArguments(gone, f.a, f.a1, f.b).Should(BeEmpty())
			Eventually(ctx, forbidden).Should(BeZero())
		}
		By("forbidden at the start")
		_, err := f.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		allow("configmaps")
		Expect(f.Operator.Start(ctx)).To(Succeed())
		without(atStart, "one")

		By("forbidden while running")
		allow("configmaps")
		Expect(f.ControlPlane.APIServer.Kill()).To(Succeed()) // the API server checks the right to a watch only when it begins
		Expect(errors.Join(f.ControlPlane.APIServer.Start(), f.ControlPlane.Ready(ctx))).To(Succeed())
		Eventually(ctx, forbidden).Should(Equal(1.0))
		without(running, "two")
	})
})
