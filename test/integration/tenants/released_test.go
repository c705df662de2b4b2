package tenants_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// lend makes the plain namespace called name with an object of its own, and binds a role in it to holders.
func (f *fixture) lend(ctx context.Context, name, role string, holders ...rbacv1.Subject) {
	GinkgoHelper()
	f.create(ctx, build.Namespace(f.own(name)), build.RoleBinding(f.own(name), "owners", role, holders...),
		build.Secret(f.own(name), "own", "x"))
}

// found makes tenant payments with a source.
func (f *fixture) found(ctx context.Context) (tenant string) {
	GinkgoHelper()
	tenant = f.own("payments")
	f.settle(ctx, build.Tenant(tenant).Users(f.own("alice"), f.own("dave")).Managers(f.own("mia")).Sudoers(f.own("bob")).
		UserSubjects(build.Group(f.own("devs")), build.ServiceAccount(f.own("ci"), "deployer")))
	f.create(ctx, build.Secret(tenant, "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
	return tenant
}

// placed places the namespace called name below parent by client c, after a cluster admin has marked it for the tenant. It waits for the
// copies there.
func (f *fixture) placed(ctx context.Context, c client.Client, name, parent string) {
	GinkgoHelper()
	f.mark(ctx, f.own(name), string(f.get(ctx, f.own("payments")).UID))
	Eventually(func() error { return c.Create(ctx, build.Hierarchy(f.own(name), build.Below(parent))) }).WithContext(ctx).Should(Succeed())
	f.Exists(ctx, build.Secret(f.own(name), "key", ""), build.RoleBinding(f.own(name), "warren:users", ""))
}

// leaves waits until the operator has released the namespace called name: what came from the tenant is deleted, and all else is kept.
func (f *fixture) leaves(ctx context.Context, name string) {
	GinkgoHelper()
	n := build.Namespace(f.own(name))
	Eventually(func(g Gomega) {
		g.Expect(f.Read(n)(ctx)).To(Succeed())
		g.Expect(n.Labels).To(Equal(map[string]string{corev1.LabelMetadataName: n.Name, v1alpha1.LabelReleased: v1alpha1.True}))
		g.Expect(n.Annotations).NotTo(Or(HaveKey(v1alpha1.AnnotationHeldBy), HaveKey(v1alpha1.AnnotationAncestry),
			HaveKey(v1alpha1.AnnotationParentUID)))
	}).WithContext(ctx).Should(Succeed())
	f.Gone(ctx, build.Secret(n.Name, "key", ""), build.RoleBinding(n.Name, "warren:users", ""),
		build.RoleBinding(n.Name, "warren:sudoers", ""))
	f.Exists(ctx, build.Secret(n.Name, "own", ""), build.RoleBinding(n.Name, "owners", ""))
}

// stays checks for a while that the namespace called name stays in the tree.
func (f *fixture) stays(ctx context.Context, name string) {
	GinkgoHelper()
	n := build.Namespace(f.own(name))
	Consistently(func() (map[string]string, error) { return n.Labels, f.Read(n)(ctx) }).WithContext(ctx).WithTimeout(test.Quiet(soon)).
		Should(And(HaveKey(v1alpha1.LabelParent), Not(HaveKey(v1alpha1.LabelReleased))))
	f.Exists(ctx, build.Secret(n.Name, "key", ""))
}

var _ = Describe("a placed namespace", func() {
	It("HIER-L1 when mia removes alice, who alone holds legacy, from the lists, legacy leaves the tree: copies and access "+
		"bindings go, own objects stay, later sources never arrive", func(ctx SpecContext) {
		f := of(world, "l01")
		tenant := f.found(ctx)
		f.lend(ctx, "legacy", "cluster-admin", build.RBACUser(f.own("alice")))
		f.placed(ctx, f.as("alice"), "legacy", tenant)
		f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("dave"))...))
		f.leaves(ctx, "legacy")
		f.event(ctx, tenant, v1alpha1.ReasonNamespaceReleased, "namespace "+f.own("legacy")+" has left the tree of tenant "+tenant)
		Eventually(func() (metav1.Condition, error) {
			return f.Reported(ctx, f.own("legacy"), v1alpha1.ConditionParentApplied)
		}).WithContext(ctx).
			Should(And(HaveField("Reason", string(v1alpha1.ReasonNamespaceReleased)), HaveField("Status", metav1.ConditionFalse),
				HaveField("Message", ContainSubstring("no longer name any subject"))))

		f.create(ctx, build.Secret(tenant, "later", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		f.grow(ctx, tenant, f.own("web"))
		f.Exists(ctx, build.Secret(f.own("web"), "later", ""))
		allowed(ctx, f.as("alice"), secretsIn(f.own("legacy")))
		Consistently(f.Read(build.Secret(f.own("legacy"), "later", ""))).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beNotFound())
	})

	It("HIER-L2 a placed namespace leaves with the last listed user, group or ServiceAccount that held it; without a listed "+
		"holder, or placed by label, it stays", func(ctx SpecContext) {
		f := of(world, "l02")
		tenant := f.found(ctx)
		alice, dave := build.RBACUser(f.own("alice")), build.RBACUser(f.own("dave"))
		f.lend(ctx, "both", "cluster-admin", alice, dave)
		f.lend(ctx, "viewed", "cluster-admin", alice)
		f.create(ctx, build.RoleBinding(f.own("viewed"), "guest", "view", dave))
		f.lend(ctx, "team", "admin", build.RBACGroup(f.own("devs")))
		f.lend(ctx, "robot", "cluster-admin", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: f.own("ci"), Name: "deployer"})
		f.lend(ctx, "nobodys", "cluster-admin", build.RBACUser(f.own("carol")))
		f.lend(ctx, "labelled", "cluster-admin", alice)
		f.placed(ctx, f.as("alice"), "both", tenant)
		f.placed(ctx, f.as("alice"), "viewed", tenant)
		for _, name := range []string{"team", "robot", "nobodys"} {
			f.placed(ctx, f.Admin(), name, tenant)
		}
		f.label(ctx, f.own("labelled"), v1alpha1.LabelParent, tenant)
		f.Exists(ctx, build.Secret(f.own("labelled"), "key", ""))
		robot, devs := build.ServiceAccount(f.own("ci"), "deployer"), build.Group(f.own("devs"))

		f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("dave"))[0], devs, robot))
		f.leaves(ctx, "viewed")
		for _, name := range []string{"both", "team", "robot", "nobodys", "labelled"} {
			f.stays(ctx, name)
		}
		f.set(ctx, f.as("mia"), tenant, map[string]any{"users": []v1alpha1.Subject{robot}, "managers": build.Users(f.own("mia"), f.own("dave"))})
		f.leaves(ctx, "team")
		f.stays(ctx, "both")
		f.set(ctx, f.as("mia"), tenant, map[string]any{"users": []v1alpha1.Subject{}, "managers": build.Users(f.own("mia"))})
		f.leaves(ctx, "both")
		f.leaves(ctx, "robot")
		f.stays(ctx, "nobodys")
		f.stays(ctx, "labelled")
	}, SpecTimeout(4*time.Minute))

	It("HIER-L3 a released namespace is placed again only by a mark and a new request, not if alice is listed again; a cleared "+
		"spec.parent makes it no root",
		func(ctx SpecContext) {
			f := of(world, "l03")
			tenant, legacy := f.found(ctx), f.own("legacy")
			f.lend(ctx, "legacy", "cluster-admin", build.RBACUser(f.own("alice")))
			f.placed(ctx, f.as("alice"), "legacy", tenant)
			f.set(ctx, f.as("mia"), tenant, users())
			f.leaves(ctx, "legacy")
			f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("alice"))...))
			out := func() {
				GinkgoHelper()
				n := build.Namespace(legacy)
				Consistently(func() (map[string]string, error) { return n.Labels, f.Read(n)(ctx) }).WithContext(ctx).WithTimeout(test.Quiet(soon)).
					Should(And(HaveKey(v1alpha1.LabelReleased), Not(HaveKey(v1alpha1.LabelParent)), Not(HaveKey(v1alpha1.LabelType))))
			}
			out()
			noParent := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"parent":null}}`))
			Expect(f.as("alice").Patch(ctx, build.Hierarchy(legacy), noParent)).To(Succeed())
			out()
			f.mark(ctx, legacy, string(f.get(ctx, tenant).UID))
			ask := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"parent":"`+tenant+`"}}`))
			Expect(f.as("alice").Patch(ctx, build.Hierarchy(legacy), ask)).To(Succeed())
			f.Exists(ctx, build.Secret(legacy, "key", ""))
			n := build.Namespace(legacy)
			f.Exists(ctx, n)
			Expect(n.Labels).NotTo(HaveKey(v1alpha1.LabelReleased))
			Expect(n.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationHeldBy, `["User `+f.own("alice")+`"]`))
		}, SpecTimeout(8*time.Minute))

	It("HIER-L4 a halted namespace of a removed holder leaves, and so does one that entered the tree below another placed one, "+
		"and moved since", func(ctx SpecContext) {
		f := of(world, "l04")
		tenant, mid := f.found(ctx), f.own("mid")
		f.grow(ctx, tenant, mid)
		f.lend(ctx, "stranded", "cluster-admin", build.RBACUser(f.own("alice")))
		f.placed(ctx, f.as("alice"), "stranded", mid)
		Expect(f.Admin().Delete(ctx, build.SubNamespace(tenant, mid))).To(Succeed())
		f.Gone(ctx, build.Namespace(mid))

		f.lend(ctx, "lower", "cluster-admin", build.RBACUser(f.own("alice")))
		f.lend(ctx, "upper", "cluster-admin", build.RBACUser(f.own("alice")))
		f.label(ctx, f.own("lower"), v1alpha1.LabelParent, f.own("upper"))
		f.placed(ctx, f.as("alice"), "upper", tenant)
		f.Exists(ctx, build.Secret(f.own("lower"), "key", ""))
		Expect(f.as("alice").Create(ctx, build.Hierarchy(f.own("lower"), build.Below(tenant)))).To(Succeed())
		Eventually(func() (metav1.Condition, error) {
			return f.Reported(ctx, f.own("lower"), v1alpha1.ConditionParentApplied)
		}).WithContext(ctx).
			Should(HaveField("Reason", string(v1alpha1.ReasonApplied)))

		f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("dave"))...))
		for _, name := range []string{"stranded", "upper", "lower"} {
			f.leaves(ctx, name)
		}
	}, SpecTimeout(8*time.Minute))

	It("HIER-L5 neither alice nor a cluster admin can set held-by; in a released namespace alice cannot remove released, nor set "+
		"parent or the level of pod security", func(ctx SpecContext) {
		f := of(world, "l05")
		tenant, legacy := f.found(ctx), f.own("legacy")
		f.lend(ctx, "legacy", "cluster-admin", build.RBACUser(f.own("alice")))
		allowed(ctx, f.as("alice"), secretsIn(legacy)) // else RBAC would refuse her
		held := client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"tenancy.warren.dev/held-by":"[\"User mia\"]"}}}`))
		Expect(f.as("alice").Patch(ctx, build.Namespace(legacy), held)).To(beRefused("only the operator and cluster administrators"))
		Expect(f.Admin().Patch(ctx, build.Namespace(legacy), held)).To(beRefused("the operator derives these keys, nobody sets them"))
		f.placed(ctx, f.as("alice"), "legacy", tenant)
		Expect(f.as("alice").Patch(ctx, build.Namespace(legacy), held)).To(beRefused("warren-"))
		f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("dave"))...))
		f.leaves(ctx, "legacy")
		for _, patch := range []string{`{"metadata":{"labels":{"tenancy.warren.dev/released":null}}}`,
			`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`,
			`{"metadata":{"labels":{"tenancy.warren.dev/parent":"` + tenant + `"}}}`} {
			Expect(f.as("alice").Patch(ctx, build.Namespace(legacy), client.RawPatch("application/merge-patch+json", []byte(patch)))).
				To(beRefused("warren-"))
		}
	})
})

var _ = Describe("an operator that is away while a list changes", SpecPriority(1), func() {
	It("HIER-L6 if alice is removed from the lists while the operator is down, her namespace leaves, and never gets a source "+
		"created meanwhile; dave's stays and gets it", func(ctx SpecContext) {
		w := ownWorld(ctx, devcluster.Options{}, "l06")
		f := of(w, "l06")
		tenant := f.found(ctx)
		f.lend(ctx, "legacy", "cluster-admin", build.RBACUser(f.own("alice")))
		f.lend(ctx, "daves", "cluster-admin", build.RBACUser(f.own("dave")))
		f.placed(ctx, f.as("alice"), "legacy", tenant)
		f.placed(ctx, f.as("dave"), "daves", tenant)
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		f.set(ctx, f.as("mia"), tenant, users(build.Users(f.own("dave"))...))
		f.create(ctx, build.Secret(tenant, "later", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		Expect(w.Operator.Start(ctx)).To(Succeed())
		f.leaves(ctx, "legacy")
		f.Exists(ctx, build.Secret(f.own("daves"), "later", ""))
		Expect(f.Read(build.Secret(f.own("legacy"), "later", ""))(ctx)).To(beNotFound())
		f.stays(ctx, "daves")
	}, SpecTimeout(8*time.Minute))
})
