package propagation_test

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/gate"
)

// rail makes a LimitRange that bounds what a container may ask for.
func rail(namespace, name string) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}},
	}
}

func kindsWithRails() []string { return append(slices.Clone(usualKinds), "{kind: LimitRange}") }

// ofRailsIn matches a POST of a LimitRange in that namespace.
func ofRailsIn(namespace string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/namespaces/"+namespace+"/limitranges")
	}
}

var _ = Describe("rails come before rights", func() {
	It("PROP-O1 in a new namespace whose LimitRange from tmpl is answered slowly, acme's RoleBinding is created after the LimitRange, by "+
		"1 write", func(ctx SpecContext) {
		s := setup{WithoutOperator: true, Kinds: kindsWithRails()}
		f := grow(ctx, start(ctx, s))
		g := gate.New(f.World)
		g.StartOperator(ctx, f.World, s.config())
		f.labelNamespace(ctx, f.acme, v1alpha1.LabelTemplate, f.tmpl)
		limits := build.Source(rail(f.tmpl, "limits"), v1alpha1.ModeUpdate)
		rights := build.Source(binding(f.acme, "rights", "admin", "alice"), v1alpha1.ModeUpdate)
		f.create(ctx, limits, rights)
		f.copied(ctx, limits, f.tree()...)
		f.copied(ctx, rights, f.tree()...)

		late := f.prefix + "late"
		l := f.ledger(ctx, "rolebindings")
		g.HoldBack(ofRailsIn(late))
		f.create(ctx, build.Child(late, f.acme))
		Eventually(ctx, g.Stopped).Should(Equal(1), "the rail is on its way")
		f.staysAbsent(ctx, rights, late)
		g.Release()
		f.copied(ctx, limits, late)
		f.copied(ctx, rights, late)
		l.come(ctx, counts{"create": 1})
		Expect(f.events(ctx, rights, v1alpha1.ReasonRailsMissing)).To(BeEmpty())
	})

	It("PROP-O4 while the POST of a template's LimitRange is held back in a new LNamespace's root, the root has neither warren:users nor "+
		"warren:sudoers; they follow", func(ctx SpecContext) {
		s := setup{WithoutOperator: true, Kinds: kindsWithRails()}
		f := grow(ctx, start(ctx, s))
		g := gate.New(f.World)
		g.StartOperator(ctx, f.World, s.config())
		limits := build.Source(rail(f.tmpl, "limits"), v1alpha1.ModeUpdate)
		f.create(ctx, limits)
		f.labelNamespace(ctx, f.acme, v1alpha1.LabelTemplate, f.tmpl)
		f.copied(ctx, limits, f.tree()...) // the operator knows the rail

		tenant := build.Tenant(f.prefix + "tenant").Users("alice").Sudoers("bob").Template(f.tmpl).Object()
		g.HoldBack(ofRailsIn(tenant.Name))
		f.create(ctx, tenant)
		Eventually(ctx, g.Stopped).Should(Equal(1), "the rail is on its way")
		users, sudoers := binding("", "warren:users", "admin"), binding("", "warren:sudoers", "cluster-admin")
		Consistently(ctx, func(g Gomega, ctx context.Context) { // one window for both: after 10 s, rights wait no longer
			for _, rights := range []*rbacv1.RoleBinding{users, sudoers} {
				g.Expect(f.standing(ctx, rights, tenant.Name)).To(BeEmpty())
			}
		}).WithTimeout(test.Quiet(soon)).Should(Succeed())
		g.Release()
		f.copied(ctx, limits, tenant.Name)
		for _, rights := range []*rbacv1.RoleBinding{users, sudoers} {
			Eventually(ctx, f.standing).WithArguments(rights, tenant.Name).Should(ConsistOf(tenant.Name))
		}
	})

	It("PROP-O2 if a policy refuses the LimitRange, the RoleBinding is created after several tries, with RailsMissing that names "+
		"namespace and LimitRange; a further one is created soon, without Event", func(ctx SpecContext) {
		f := grow(ctx, world)
		limits := build.Source(rail(f.acme, "limits"), v1alpha1.ModeUpdate)
		rights := build.Source(binding(f.acme, "rights", "admin", "alice"), v1alpha1.ModeUpdate)
		f.create(ctx, limits, rights)
		f.copied(ctx, limits, f.tree()...)
		f.copied(ctx, rights, f.tree()...)

		late := f.prefix + "late"
		policy, bound := build.Policy(late, admissionv1.Create, corev1.SchemeGroupVersion.WithResource("limitranges"),
			"object.metadata.name != 'limits'", "no rails here")
		f.create(ctx, policy, bound)
		DeferCleanup(func(ctx SpecContext) { _ = client.IgnoreNotFound(f.Admin().Delete(ctx, bound)) })
		f.create(ctx, build.Namespace(late))
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsInvalid(f.Admin().Create(ctx, rail(late, "limits"), client.DryRunAll))
		}).Should(BeTrue(), "the policy is in force")
		l := f.ledger(ctx, "limitranges")
		f.move(ctx, late, f.acme)
		f.copied(ctx, rights, late)
		Expect(l.count(ctx, func(r audit.Request) bool { return r.Namespace == late && r.Verb == "create" })["create"]).
			To(BeNumerically(">", 1), "the rail was tried more than once before")
		Eventually(ctx, f.events).WithArguments(rights, v1alpha1.ReasonRailsMissing).
			Should(ConsistOf(And(ContainSubstring(late), ContainSubstring(`LimitRange "limits"`))))

		By("what comes later isn't held back for the same rail")
		further := build.Source(binding(f.acme, "further", "view", "erin"), v1alpha1.ModeUpdate)
		f.create(ctx, further)
		f.copied(ctx, further, late)
		Expect(f.events(ctx, further, v1alpha1.ReasonRailsMissing)).To(BeEmpty())
		f.remove(ctx, bound)
		f.copied(ctx, limits, late)
	})

	It("PROP-O3 while the POST of a new LimitRange is held back in a, a deleted copy of a RoleBinding is created again there; another is "+
		"updated", func(ctx SpecContext) {
		s := setup{WithoutOperator: true, WithoutPolicies: true, Kinds: kindsWithRails()}
		f := grow(ctx, start(ctx, s))
		g := gate.New(f.World)
		g.StartOperator(ctx, f.World, s.config())
		rights := build.Source(binding(f.acme, "rights", "admin", "alice"), v1alpha1.ModeUpdate)
		other := build.Source(binding(f.acme, "other", "view", "erin"), v1alpha1.ModeUpdate)
		f.create(ctx, rights, other)
		f.copied(ctx, rights, f.tree()...)
		f.copied(ctx, other, f.tree()...)
		g.HoldBack(ofRailsIn(f.a))
		limits := build.Source(rail(f.acme, "limits"), v1alpha1.ModeUpdate)
		f.create(ctx, limits)
		Eventually(ctx, g.Stopped).Should(Equal(1), "a rail is on its way")
		f.remove(ctx, at(ctx, f, rights, f.a))
		f.copied(ctx, rights, f.a)
		change(ctx, f, other, func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "dave" })
		f.copied(ctx, other, f.a)
		Expect(f.standing(ctx, limits, f.a)).To(BeEmpty(), "the rail is held back still")
		g.Release()
		f.copied(ctx, limits, f.tree()...)
	})
})
