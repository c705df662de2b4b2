package propagation_test

import (
	"context"
	"fmt"
	"strings"
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
)

// secretsRole is the ClusterRole that gives the operator Secrets where it is bound.
const secretsRole = "operator-secrets"

// takeClusterWide takes the operator's cluster-wide right on Secrets away; grant gives it back in a namespace.
func (f *family) takeClusterWide(ctx context.Context) {
	GinkgoHelper()
	all := []string{"get", "list", "watch", "create", "update", "delete"}
	f.create(ctx, build.ClusterRole(secretsRole, build.Rule("", "secrets", all...)))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "warren-kinds-configured"}}
	change(ctx, f, role, func(role *rbacv1.ClusterRole) {
		role.Rules = []rbacv1.PolicyRule{build.Rule("", "configmaps", all...)}
	})
	f.mayWatchSecrets(ctx, f.acme, false)
}

// mayWatchSecrets waits until the API server lets the operator list Secrets in a namespace, or no longer.
func (f *family) mayWatchSecrets(ctx context.Context, namespace string, may bool) {
	GinkgoHelper()
	f.mayList(ctx, build.Secret("", "", ""), namespace, may)
}

// mayList waits until the API server lets the operator list objects of that kind in a namespace, or everywhere if it is "", or no longer.
func (f *family) mayList(ctx context.Context, object client.Object, namespace string, may bool) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) bool {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kindOf(object))
		list.Kind += "List"
		return f.As(controlplane.Operator).List(ctx, list, client.InNamespace(namespace)) == nil
	}).Should(Equal(may))
}

// grant lets the operator see and write Secrets in these namespaces; revoke takes that right away.
func (f *family) grant(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		f.create(ctx, operatorBinding(namespace))
		f.mayWatchSecrets(ctx, namespace, true)
	}
}

func (f *family) revoke(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		f.remove(ctx, operatorBinding(namespace))
		f.mayWatchSecrets(ctx, namespace, false)
	}
}

// staysUnreported checks for a while that the operator makes no HierarchyConfiguration in a namespace.
func (f *family) staysUnreported(ctx context.Context, namespace string) {
	GinkgoHelper()
	Consistently(ctx, f.reports).WithArguments(namespace).WithTimeout(test.Quiet(10 * time.Second)).Should(BeEmpty())
}

func operatorBinding(namespace string) *rbacv1.RoleBinding {
	account := strings.Split(controlplane.Operator, ":")
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretsRole,
			Labels: map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeNone}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: secretsRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account[2], Name: account[3]}},
	}
}

var _ = Describe("an operator with rights in some namespaces", Ordered, func() {
	var f *family
	unseen := func(ctx context.Context) (float64, error) {
		metrics, err := f.Operator.Metrics(ctx)
		return metrics.Value("warren_propagation_unobserved", map[string]string{"kind": "Secret", "state": "forbidden"}), err
	}
	source := func(ctx context.Context, name string) client.Object {
		GinkgoHelper()
		s := build.Source(build.Secret(f.acme, name, "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		return s
	}
	BeforeAll(func(ctx SpecContext) {
		w := start(ctx, setup{WithoutPolicies: true, Kinds: []string{
			"{kind: Secret, scope: Namespaces}", "{kind: ConfigMap, scope: Cluster}", "{group: rbac.authorization.k8s.io, kind: RoleBinding}",
		}})
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		f = grow(ctx, w)
		f.takeClusterWide(ctx)
		f.grant(ctx, f.acme, f.a, f.a1, f.b, f.zeta, f.z, f.tmpl)
		Expect(w.Operator.Start(ctx)).To(Succeed())
	})

	It("INF-I56 copies of an unseen source stay (`make test-long`: for 10 min), NotObserved with one Event; other kinds go on; with the "+
		"right back, nothing is written", func(ctx SpecContext) {
		s := source(ctx, "i56")
		l := f.ledger(ctx, "secrets")
		f.revoke(ctx, f.acme)
		f.says(ctx, map[string]string{
			f.acme: "NotObserved: secrets: forbidden, missing list, watch",
			f.a:    fmt.Sprintf("NotObserved: secrets in namespace %s: forbidden, missing list, watch", f.acme),
		})
		Eventually(ctx, unseen).Should(Equal(1.0))
		m := build.Source(build.ConfigMap(f.acme, "i56", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, m)
		f.copied(ctx, m, f.tree()...)
		standing := func(ctx context.Context) ([]string, error) { return f.standing(ctx, s, f.tree()...) }
		Consistently(ctx, standing).WithTimeout(test.Quiet(10 * time.Minute)).Should(ConsistOf(f.tree()))
		hc := &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: v1alpha1.HierarchyConfigurationName}}
		Eventually(ctx, f.events).WithArguments(hc, v1alpha1.ReasonNotObserved).Should(HaveLen(1))
		f.grant(ctx, f.acme)
		f.says(ctx, map[string]string{f.acme: "InSync: ", f.a: "InSync: "})
		Eventually(ctx, unseen).Should(BeZero())
		l.rests(ctx, counts{})
		Expect(f.events(ctx, hc, v1alpha1.ReasonNotObserved)).To(HaveLen(1))
	})

	It("INF-I57 copies of a source that is deleted unseen stay, and are removed when the right is regained", func(ctx SpecContext) {
		s, stays := source(ctx, "i57"), source(ctx, "i57-stays")
		f.revoke(ctx, f.acme)
		f.says(ctx, map[string]string{f.acme: "NotObserved: "})
		f.remove(ctx, s)
		Expect(f.standing(ctx, s, f.tree()...)).To(HaveLen(3))
		f.grant(ctx, f.acme)
		f.absent(ctx, s, f.tree()...)
		f.staysCopied(ctx, stays, f.tree()...)
	})

	It("INF-I58 while the right is missing in one child, it is NotObserved, and others are served; later its deleted copy is "+
		"written again", func(ctx SpecContext) {
		s := source(ctx, "i58")
		f.revoke(ctx, f.a)
		f.says(ctx, map[string]string{f.a: "NotObserved: secrets: forbidden, missing list, watch"})
		f.remove(ctx, at(ctx, f, s, f.a))
		more := build.Source(build.Secret(f.acme, "i58-more", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, more)
		f.copied(ctx, more, f.b)
		f.staysAbsent(ctx, more, f.a, f.a1)
		Expect(f.standing(ctx, s, f.tree()...)).To(ConsistOf(f.a1, f.b))
		f.grant(ctx, f.a)
		f.copied(ctx, s, f.tree()...)
		f.copied(ctx, more, f.tree()...)
	})

	It("INF-I81 only if the right in a leaf is lost, the operator makes a HierarchyConfiguration there, NotObserved with one Event; with "+
		"the right back, it is InSync", func(ctx SpecContext) {
		leaf := f.prefix + "i81"
		f.create(ctx, build.Namespace(leaf))
		f.grant(ctx, leaf)
		f.move(ctx, leaf, f.b) // only now: the operator would report what it may not see for 2 s
		s := source(ctx, "i81")
		f.copied(ctx, s, leaf)
		hc := build.Hierarchy(leaf)
		f.staysUnreported(ctx, leaf)
		f.revoke(ctx, leaf)
		f.says(ctx, map[string]string{leaf: "NotObserved: secrets: forbidden, missing list, watch"})
		Eventually(ctx, f.events).WithArguments(hc, v1alpha1.ReasonNotObserved).Should(HaveLen(1))
		f.staysCopied(ctx, s, leaf)
		f.grant(ctx, leaf)
		f.says(ctx, map[string]string{leaf: "InSync: "})
		Expect(f.events(ctx, hc, v1alpha1.ReasonNotObserved)).To(HaveLen(1))
		f.move(ctx, leaf, "") // the cases below count informers
		f.absent(ctx, s, leaf)
	})

	It("INF-I70 a new namespace has no copy until the right there is granted; copies follow as it moves to another tree, back, and out of "+
		"the forest", func(ctx SpecContext) {
		s := source(ctx, "i70")
		below := f.prefix + "i70"
		f.create(ctx, build.Child(below, f.a))
		f.staysAbsent(ctx, s, below)
		f.grant(ctx, below)
		f.copied(ctx, s, below)
		f.move(ctx, below, f.zeta)
		f.absent(ctx, s, below)
		f.move(ctx, below, f.b)
		f.copied(ctx, s, below)
		f.move(ctx, below, "")
		f.absent(ctx, s, below)
	})

	It("INF-I72 scope Namespaces: where the operator sees, random changes of rights and objects (`make test-long`: 1,000, else 36) end as "+
		"with all rights; elsewhere nothing is written", func(ctx SpecContext) {
		f.wanderAbout(ctx, false)
	})

	It("INF-I60 a kind of scope Cluster with RoleBindings alone is NotObserved, cluster-wide; other kinds continue; with the cluster-wide "+
		"right, missed changes are carried out without a restart",
		func(ctx SpecContext) {
			s := build.Source(build.ConfigMap(f.acme, "i60", "1"), v1alpha1.ModeUpdate)
			f.create(ctx, s)
			f.copied(ctx, s, f.tree()...)
			_, err := f.Operator.Stop()
			Expect(err).NotTo(HaveOccurred())
			rules := []rbacv1.PolicyRule{build.Rule("", "configmaps", "get", "list", "watch", "create", "update", "delete")}
			change(ctx, f, build.ClusterRole(secretsRole), func(role *rbacv1.ClusterRole) { role.Rules = append(role.Rules, rules...) })
			everywhere := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "warren-kinds-configured"}}
			change(ctx, f, everywhere, func(role *rbacv1.ClusterRole) { role.Rules = nil })
			f.mayList(ctx, build.ConfigMap("", "", ""), "", false)
			f.mayList(ctx, build.ConfigMap("", "", ""), f.acme, true)
			f.remove(ctx, s)
			leaf := f.prefix + "i60"
			f.create(ctx, build.Child(leaf, f.z))
			f.grant(ctx, leaf)
			Expect(f.Operator.Start(ctx)).To(Succeed())

			for _, namespace := range []string{f.acme, f.a, f.b, f.z} { // the operator makes none to report what is so everywhere
				Expect(client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Hierarchy(namespace)))).To(Succeed())
			}
			blind := "NotObserved: configmaps: forbidden cluster-wide"
			f.says(ctx, map[string]string{f.acme: blind, f.a: blind, f.b: blind, f.z: blind})
			other := source(ctx, "i60-other")
			f.staysCopied(ctx, other, f.tree()...)
			Expect(f.standing(ctx, s, f.tree()...)).To(HaveLen(3))
			f.staysUnreported(ctx, leaf)
			change(ctx, f, everywhere, func(role *rbacv1.ClusterRole) { role.Rules = rules })
			f.absent(ctx, s, f.tree()...)
			f.says(ctx, map[string]string{f.acme: "InSync: ", f.a: "InSync: ", f.b: "InSync: ", f.z: "InSync: "})
		})
})
