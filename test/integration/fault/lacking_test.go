package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/gate"
)

// lacking is what happens while the operator lacks a right: a sudoer is removed, a source changes, another one goes.
var lacking = story{
	id: "F34", title: "a sudoer and a source go, and a source changes",
	given: func(ctx context.Context, s *scene) {
		family(ctx, s)
		s.create(ctx, build.Hierarchy(s.own("payments")), s.source("stays", "1"), s.source("goes", "1"))
		for i := range 3 {
			s.copied(ctx, fmt.Sprint("n", i), "stays", "1")
			s.copied(ctx, fmt.Sprint("n", i), "goes", "1")
		}
	},
	play: func(ctx context.Context, s *scene) {
		change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = build.Users(s.own("sue")) })
		s.rights.revoke(s.own("bob"))
		change(ctx, s, s.source("stays", ""), func(o *corev1.Secret) { o.Data["key"] = []byte("2") })
		s.remove(ctx, s.source("goes", ""))
	},
}

// lack takes something away from the operator; the function end, which begin returns, gives it back.
type lack struct {
	key, title string
	lasts      time.Duration
	begin      func(context.Context, *scene) (end func())
	// names waits until the operator has named what it lacks.
	names func(context.Context, *scene)
}

// mayWatchSecrets waits until the API server's authorizer lets the operator watch Secrets, or no longer.
func (s *scene) mayWatchSecrets(ctx context.Context, may bool) {
	GinkgoHelper()
	Eventually(ctx, s.may).WithArguments(controlplane.Operator, authorizationv1.ResourceAttributes{Verb: "watch", Resource: "secrets"}).
		Should(Equal(may))
}

// withoutWatch takes the verb watch on Secrets away from the operator.
func withoutWatch(ctx context.Context, s *scene) (end func()) {
	GinkgoHelper()
	role := build.ClusterRole("warren-kinds-configured")
	Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
	before := role.DeepCopy()
	change(ctx, s, role, func(r *rbacv1.ClusterRole) {
		var rules []rbacv1.PolicyRule
		for _, rule := range r.Rules {
			if i := slices.Index(rule.Resources, "secrets"); i >= 0 {
				only := *rule.DeepCopy()
				only.Resources = []string{"secrets"}
				only.Verbs = slices.DeleteFunc(only.Verbs, func(verb string) bool { return verb == "watch" })
				rule.Resources = slices.Delete(slices.Clone(rule.Resources), i, i+1)
				rules = append(rules, only)
			}
			if len(rule.Resources) > 0 {
				rules = append(rules, rule)
			}
		}
		r.Rules = rules
	})
	s.mayWatchSecrets(ctx, false)
	return func() {
		GinkgoHelper()
		change(ctx, s, role, func(r *rbacv1.ClusterRole) { r.Rules = before.Rules })
		s.mayWatchSecrets(ctx, true)
	}
}

// withoutBindings deletes the ClusterRoleBindings of the operator.
func withoutBindings(ctx context.Context, s *scene) (end func()) {
	GinkgoHelper()
	all, account := &rbacv1.ClusterRoleBindingList{}, strings.Split(controlplane.Operator, ":")
	Expect(s.Admin().List(ctx, all)).To(Succeed())
	var own []*rbacv1.ClusterRoleBinding
	for i := range all.Items {
		if slices.ContainsFunc(all.Items[i].Subjects, func(subject rbacv1.Subject) bool { return subject.Name == account[3] }) {
			own = append(own, &all.Items[i])
		}
	}
	Expect(own).NotTo(BeEmpty())
	for _, binding := range own {
		Expect(s.Admin().Delete(ctx, binding)).To(Succeed())
	}
	s.mayWatchSecrets(ctx, false)
	return func() {
		GinkgoHelper()
		for _, binding := range own {
			binding.ResourceVersion, binding.UID = "", ""
			s.create(ctx, binding)
		}
		s.mayWatchSecrets(ctx, true)
	}
}

// withoutToken answers all the operator's requests with 401, as if the API server no longer knew its token.
func withoutToken(_ context.Context, s *scene) (end func()) {
	s.Script(func(gate.Request) gate.Fault { return gate.Fault{Code: http.StatusUnauthorized} })
	return func() { s.Script(nil) }
}

// logs waits until the operator's log has a text that it had not at the beginning.
func logs(text string) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		GinkgoHelper()
		before := strings.Count(s.Operator.Log(), text)
		Eventually(ctx, func() int { return strings.Count(s.Operator.Log(), text) }).Should(BeNumerically(">", before), s.explain)
	}
}

var lacks = []lack{
	{
		key: "f34a", title: "one verb on one kind", lasts: time.Minute, begin: withoutWatch,
		names: func(ctx context.Context, s *scene) {
			s.propagationSays(ctx, "payments", metav1.ConditionFalse, "NotObserved: secrets: forbidden cluster-wide")
		},
	},
	{key: "f34b", title: "all rights of its ClusterRoleBindings", lasts: time.Minute, begin: withoutBindings, names: logs("forbidden")},
	{key: "f34c", title: "a token", lasts: 45 * time.Second, begin: withoutToken, names: logs("asked for the client to provide credentials")},
}

func (l lack) run(ctx context.Context, calm ending) {
	GinkgoHelper()
	s := guarded.scene(l.key)
	lacking.given(ctx, s)
	begun := s.begin(ctx)
	began, end := time.Now(), l.begin(ctx, s)
	defer func() { end() }()
	guarded.Disconnect() // a watch that is open continues without the right to it; only a new one needs the right
	lacking.play(ctx, s)
	l.names(ctx, s)
	Consistently(ctx, func(g Gomega) {
		for i := range 3 {
			for _, name := range []string{"stays", "goes"} {
				copied := build.Secret(s.own(fmt.Sprint("n", i)), name, "")
				g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(copied), copied)).To(Succeed())
			}
		}
	}).WithTimeout(max(time.Until(began.Add(l.lasts)), time.Second)).WithPolling(time.Second).Should(Succeed(), "it can't see the source")
	end()
	end = func() {}
	Eventually(ctx, func() error {
		state, err := s.state()
		if err != nil {
			return err
		}
		return differs(state, calm.state)
	}).Should(Succeed(), s.explain)
	begun.stop()
	Expect(touchedOf(begun)).To(BeEmpty(), "FLT-I1")
	Expect(s.rights.broken(ctx, s)).To(BeEmpty(), "FLT-I2")
}

var _ = Describe("an operator that lacks", Ordered, ContinueOnFailure, func() {
	for _, l := range lacks {
		It("FLT-F34 while a verb, ClusterRoleBindings or the token is missing (`make test-long`: for longer), nothing is deleted because it is "+
			"unseen; a condition or log names the lack; then "+
			"all recovers: "+l.title+" is missing", func(ctx SpecContext) {
			if l.key == "f34c" && test.IsLong() {
				l.lasts = 5 * time.Minute
			}
			l.run(ctx, guarded.rehearse(ctx, lacking))
			guarded.checkProcess()
		})
	}
})
