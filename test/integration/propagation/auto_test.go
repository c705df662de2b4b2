package propagation_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// mayEverywhere gives the operator its right on Secrets in the whole cluster, or takes it away, and waits until the API server knows.
func (f *family) mayEverywhere(ctx context.Context, may bool) {
	GinkgoHelper()
	resources := []string{"configmaps"}
	if may {
		resources = append(resources, "secrets")
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "warren-kinds-configured"}}
	change(ctx, f, role, func(role *rbacv1.ClusterRole) {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch", "create",
			"update", "delete"}}}
	})
	f.mayWatchSecrets(ctx, "", may)
}

// watched waits until a resource is watched in the whole cluster, by one watch for sources and one for copies, or in namespaces alone.
func (f *family) watched(ctx context.Context, resource string, everywhere bool) {
	GinkgoHelper()
	informers := func(ctx context.Context, scope string) (float64, error) {
		metrics, err := f.Operator.Metrics(ctx)
		return metrics.Value("watchset_informers", map[string]string{"resource": resource, "scope": scope, "state": string(watchset.Synced)}), err
	}
	if everywhere {
		Eventually(ctx, informers).WithArguments("cluster").Should(Equal(2.0))
		Eventually(ctx, informers).WithArguments("namespace").Should(BeZero())
		return
	}
	Eventually(ctx, informers).WithArguments("cluster").Should(BeZero())
	Eventually(ctx, informers).WithArguments("namespace").Should(BeNumerically(">", 0))
}

var _ = Describe("an operator that watches as far as it may", Ordered, func() {
	var f *family
	kinds := []string{"{kind: Secret, scope: Auto}", "{kind: ConfigMap}", "{group: rbac.authorization.k8s.io, kind: RoleBinding}"}
	source := func(ctx context.Context, name string, namespaces ...string) client.Object {
		GinkgoHelper()
		s := build.Source(build.Secret(f.acme, name, "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, namespaces...)
		return s
	}
	BeforeAll(func(ctx SpecContext) {
		f = grow(ctx, start(ctx, setup{WithoutPolicies: true, Kinds: kinds}))
		// the operator makes none if all is well; it may have made one before it could see all
		for _, namespace := range []string{f.acme, f.a, f.b} {
			Expect(client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.Hierarchy(namespace)))).To(Succeed())
		}
		f.create(ctx, build.ClusterRole(secretsRole, build.Rule("", "secrets", "get", "list", "watch", "create", "update", "delete")))
		f.grant(ctx, f.acme, f.a, f.a1, f.zeta, f.z, f.tmpl)
		f.watched(ctx, "secrets", true)
	})

	It("INF-I74 when the cluster-wide right is lost, watches of namespaces replace it without a write, and b is NotObserved; when it "+
		"returns, b gets its missing copy", func(ctx SpecContext) {
		s := source(ctx, "i74", f.tree()...)
		l := f.ledger(ctx, "secrets")
		f.mayEverywhere(ctx, false)
		f.watched(ctx, "secrets", false)
		f.says(ctx, map[string]string{
			f.acme: "InSync: ", f.a: "InSync: ", f.b: "NotObserved: secrets: forbidden, missing list, watch",
		})
		l.rests(ctx, counts{})
		more := source(ctx, "i74-more", f.a, f.a1)
		f.staysAbsent(ctx, more, f.b)
		f.staysCopied(ctx, s, f.tree()...)

		f.mayEverywhere(ctx, true)
		f.watched(ctx, "secrets", true)
		f.says(ctx, map[string]string{f.b: "InSync: "})
		f.copied(ctx, more, f.b)
		l.come(ctx, counts{"create": 3})
	})

	It("INF-I75 while the cluster-wide right is revoked and restored three times, each copy of new sources is created once; none is deleted "+
		"or written anew", func(ctx SpecContext) {
		stays := source(ctx, "i75-stays", f.tree()...)
		l := f.ledger(ctx, "secrets")
		var sources []client.Object
		for round := range 3 {
			for _, may := range []bool{false, true} {
				done := make(chan struct{})
				go func() { defer close(done); defer GinkgoRecover(); f.mayEverywhere(ctx, may) }()
				for i := range 10 {
					s := build.Source(build.Secret(f.acme, fmt.Sprintf("i75-%d-%t-%d", round, may, i), "1"), v1alpha1.ModeUpdate)
					f.create(ctx, s)
					sources = append(sources, s)
				}
				Eventually(ctx, done).Should(BeClosed())
				f.watched(ctx, "secrets", may)
			}
		}
		for _, s := range sources {
			f.copied(ctx, s, f.tree()...)
		}
		Eventually(ctx, l.accepted).Should(Equal(counts{"create": 3 * len(sources)}), l.String)
		f.remove(ctx, sources[0])
		f.absent(ctx, sources[0], f.tree()...)
		f.staysCopied(ctx, stays, f.tree()...)
	})

	It("INF-I72 scope Auto: where the operator sees, random changes of rights and objects (`make test-long`: 1,000, else 36) end as with "+
		"all rights; elsewhere nothing is written", func(ctx SpecContext) {
		f.wanderAbout(ctx, true)
	})

	It("INF-I78 a kind that a changed configuration adds with scope Auto is watched cluster-wide, and its sources "+
		"are copied", func(ctx SpecContext) {
		without := setup{Kinds: []string{kinds[0], kinds[2], "{kind: ConfigMap, mode: Remove}"}}.config()
		Expect(f.Operator.Configure(ctx, without)).To(Succeed())
		m := build.Source(build.ConfigMap(f.acme, "i78", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, m)
		f.staysAbsent(ctx, m, f.tree()...)
		Expect(f.Operator.Configure(ctx, setup{Kinds: []string{kinds[0], kinds[2]}}.config())).To(Succeed())
		f.staysAbsent(ctx, m, f.tree()...)
		Expect(f.Operator.Configure(ctx, setup{Kinds: []string{kinds[0], kinds[2], "{kind: ConfigMap, scope: Auto}"}}.config())).To(Succeed())
		f.watched(ctx, "configmaps", true)
		f.copied(ctx, m, f.tree()...)
		f.watched(ctx, "secrets", true)
	})

	It("INF-I76 copies in a namespace that left the forest while the operator was down are deleted after its start, or once the right there "+
		"is granted", func(ctx SpecContext) {
		s := source(ctx, "i76", f.a1, f.b)
		stop := func() {
			GinkgoHelper()
			_, err := f.Operator.Stop()
			Expect(err).NotTo(HaveOccurred())
		}
		By("in its namespaces")
		f.mayEverywhere(ctx, false)
		f.watched(ctx, "secrets", false)
		stop()
		f.move(ctx, f.a1, "")
		Expect(f.Operator.Start(ctx)).To(Succeed())
		f.absent(ctx, s, f.a1)
		f.staysCopied(ctx, s, f.a)

		By("once it may look there")
		below := f.prefix + "i76"
		f.create(ctx, build.Child(below, f.acme))
		f.grant(ctx, below)
		f.copied(ctx, s, below)
		stop()
		f.move(ctx, below, "")
		f.revoke(ctx, below)
		Expect(f.Operator.Start(ctx)).To(Succeed())
		f.watched(ctx, "secrets", false)
		Consistently(ctx, f.standing).WithArguments(s, below).WithTimeout(test.Quiet(soon)).Should(ConsistOf(below))
		f.grant(ctx, below)
		f.absent(ctx, s, below)
		f.mayEverywhere(ctx, true)
		f.watched(ctx, "secrets", true)
	})
})
