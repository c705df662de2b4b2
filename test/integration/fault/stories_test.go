package fault_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// stories are those of the specification's page faults, FLT-S1 and so on, with fewer namespaces. Those of the whole cluster are in
// cluster_test.go.
var stories = []story{
	{id: "S1", title: "a tenant comes", given: func(context.Context, *scene) {}, play: tenant, sparse: 5},
	{id: "S2", title: "a sudoer is removed and a manager comes in one edit", given: tenant, play: removesSudoer, sparse: 2,
		order: revokesFirst},
	{
		id: "S3", title: "a tenant goes with what is below it", given: family, sparse: 11, goes: []string{"payments", "n0", "n1", "n2"},
		play: func(ctx context.Context, s *scene) {
			s.remove(ctx, s.payments().Object())
			s.rights.revoke(s.own("bob"))
			s.rights.revokeAs("user", s.own("alice"))
			s.rights.revokeAs("manager", s.own("mia"))
			familyIsGone(ctx, s)
		},
	},
	{
		id: "S3f", title: "a tenant without children goes, in the foreground", given: tenant, sparse: 8, goes: []string{"payments"},
		play: func(ctx context.Context, s *scene) {
			change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.AllowCascadingDeletion = false })
			s.ready(ctx)
			s.remove(ctx, s.payments().Object(), client.PropagationPolicy(metav1.DeletePropagationForeground))
			s.rights.revoke(s.own("bob"))
			s.gone(ctx, s.payments().Object(), build.Namespace(s.own("payments")))
		},
	},
	{
		id: "S3o", title: "a tenant goes by the policy Orphan, which changes nothing", given: family, sparse: 11,
		goes: []string{"payments", "n0", "n1", "n2"},
		play: func(ctx context.Context, s *scene) {
			s.remove(ctx, s.payments().Object(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
			s.rights.revoke(s.own("bob"))
			familyIsGone(ctx, s)
		},
	},
	{
		id: "S4", title: "three levels come at once, and the middle one goes with the last", given: tenant, sparse: 8,
		goes: []string{"mid", "low"},
		play: func(ctx context.Context, s *scene) {
			s.create(ctx, build.SubNamespace(s.own("payments"), s.own("mid")))
			s.exist(ctx, build.Namespace(s.own("mid")))
			s.create(ctx, build.SubNamespace(s.own("mid"), s.own("low")))
			s.plant(ctx, s.bound(ctx, "mid", "low").Name)
			s.remove(ctx, build.SubNamespace(s.own("payments"), s.own("mid")))
			s.gone(ctx, build.Namespace(s.own("low")), build.Namespace(s.own("mid")), build.SubNamespace(s.own("payments"), s.own("mid")))
		},
	},
	{id: "S5", title: "a subtree of five moves between two tenants", given: twoTenants, play: moves, sparse: 6, order: removesFirst},
	{id: "S6", title: "a source comes, changes, and goes; a binding changes its role", given: family, play: sources, sparse: 7},
	{id: "S7", title: "a ResourceDistribution comes, changes, shrinks, and goes", given: plainNamespaces,
		play: distributes, sparse: 6},
	{id: "S8", title: "a HierarchyConfiguration places, requires a child, clears, and goes", given: adoptable, play: places, sparse: 5},
}

func removesSudoer(ctx context.Context, s *scene) {
	GinkgoHelper()
	change(ctx, s, s.payments().Object(), func(lns *v1alpha1.LNamespace) {
		lns.Spec.Sudoers = build.Users(s.own("sue"))
		lns.Spec.Managers = build.Users(s.own("mia"), s.own("max"))
	})
	s.rights.revoke(s.own("bob"))
	s.gone(ctx, build.ClusterRole("warren:self:"+s.own("bob")))
	s.ready(ctx)
}

// revokesFirst checks that the sudoer has lost the right before the manager gets one.
func revokesFirst(s *scene, events []event) (wrong []string) {
	var holds bool
	for _, e := range events {
		switch text := contentOf(e.object); {
		case e.object.GetName() == "warren:sudo:"+s.own("payments") && e.object.GetKind() == "ClusterRoleBinding":
			holds = e.kind != watch.Deleted && strings.Contains(text, s.own("bob"))
		case holds && e.object.GetLabels()[v1alpha1.LabelAccess] != "" && strings.Contains(text, `"`+s.own("max")+`"`):
			wrong = append(wrong, placeOf(e.object)+" names max before bob has lost sudo")
		}
	}
	return wrong
}

// twoTenants are two trees with three sources each: one with five sub-namespaces, and one with none.
func twoTenants(ctx context.Context, s *scene) {
	GinkgoHelper()
	s.create(ctx, build.Root(s.own("first")), build.Root(s.own("second")))
	parent := "first"
	for i := range 5 {
		s.create(ctx, build.Child(s.own(fmt.Sprint("m", i)), s.own(parent)))
		s.plant(ctx, s.own(fmt.Sprint("m", i)))
		if parent = "m0"; i > 2 {
			parent = "m1"
		}
	}
	for _, root := range []string{"first", "second"} {
		for i := range 3 {
			s.create(ctx, build.Source(build.ConfigMap(s.own(root), fmt.Sprint("of-", root, i), "1"), v1alpha1.ModeUpdate))
		}
	}
	for i := range 5 {
		for n := range 3 {
			s.exist(ctx, build.ConfigMap(s.own(fmt.Sprint("m", i)), fmt.Sprint("of-first", n), ""))
		}
	}
}

func moves(ctx context.Context, s *scene) {
	GinkgoHelper()
	change(ctx, s, build.Namespace(s.own("m0")), func(n *corev1.Namespace) { n.Labels[v1alpha1.LabelParent] = s.own("second") })
	for i := range 5 {
		for n := range 3 {
			s.exist(ctx, build.ConfigMap(s.own(fmt.Sprint("m", i)), fmt.Sprint("of-second", n), ""))
			s.gone(ctx, build.ConfigMap(s.own(fmt.Sprint("m", i)), fmt.Sprint("of-first", n), ""))
		}
	}
}

// removesFirst checks, in each namespace, that the last copy of the old tree is deleted before the first of the new one is created.
func removesFirst(s *scene, events []event) (wrong []string) {
	old := map[string]int{}
	for _, e := range events {
		namespace, from := e.object.GetNamespace(), e.object.GetLabels()[v1alpha1.LabelInheritedFrom]
		switch {
		case from == s.own("first") && e.kind == watch.Deleted:
			old[namespace]--
		case from == s.own("first") && e.kind == watch.Added:
			old[namespace]++
		case from == s.own("second") && e.kind == watch.Added && old[namespace] > 0:
			wrong = append(wrong, fmt.Sprintf("%s came before %d old copies were gone", placeOf(e.object), old[namespace]))
		}
	}
	return wrong
}

func sources(ctx context.Context, s *scene) {
	GinkgoHelper()
	root := s.own("payments")
	secret, binding := build.Source(build.Secret(root, "s", "1"), v1alpha1.ModeUpdate),
		build.Source(build.RoleBinding(root, "b", "view", build.RBACUser(s.own("eve"))), v1alpha1.ModeUpdate)
	s.create(ctx, secret, binding)
	ofSecret := func(namespace string) *corev1.Secret { return build.Secret(namespace, "s", "") }
	has := func(value string) func(Gomega, *corev1.Secret) {
		return func(g Gomega, c *corev1.Secret) { g.Expect(string(c.Data["key"])).To(Equal(value)) }
	}
	everywhere(ctx, s, ofSecret, has("1"))
	change(ctx, s, secret, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
	everywhere(ctx, s, ofSecret, has("2"))
	s.remove(ctx, binding)
	for i := range 3 {
		s.gone(ctx, build.RoleBinding(s.own(fmt.Sprint("n", i)), "b", "view"))
	}
	other := build.Source(build.RoleBinding(root, "b", "edit", build.RBACUser(s.own("eve"))), v1alpha1.ModeUpdate)
	s.create(ctx, other)
	for i := range 3 {
		s.exist(ctx, build.RoleBinding(s.own(fmt.Sprint("n", i)), "b", "edit"))
	}
	change(ctx, s, secret, func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelPropagate) })
	s.remove(ctx, other)
	for i := range 3 {
		s.gone(ctx, build.Secret(s.own(fmt.Sprint("n", i)), "s", ""), build.RoleBinding(s.own(fmt.Sprint("n", i)), "b", "edit"))
	}
}

func plainNamespaces(ctx context.Context, s *scene) {
	GinkgoHelper()
	for i := range 6 {
		name := s.own(fmt.Sprint("t", i))
		s.create(ctx, build.Namespace(name, "scene", s.key))
		s.plant(ctx, name)
	}
}

// distribution is the scene's ResourceDistribution, with a Secret of that value.
func (s *scene) distribution(value string) *v1alpha1.ResourceDistribution {
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: s.own("rd")}}
	rd.Spec.Resource = runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"given"},"stringData":{"key":%q}}`, value)}
	rd.Spec.Targets.NamespaceLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"scene": s.key}}
	return rd
}

// given waits until the first n targets have the copy with that value, and the others none.
func (s *scene) given(ctx context.Context, n int, value string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		for i := range 6 {
			copied := build.Secret(s.own(fmt.Sprint("t", i)), "given", "")
			err := s.Admin().Get(ctx, client.ObjectKeyFromObject(copied), copied)
			if i >= n {
				g.Expect(err).To(HaveOccurred())
				continue
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(copied.Data["key"])).To(Equal(value))
		}
	}).Should(Succeed(), s.explain)
}

func distributes(ctx context.Context, s *scene) {
	GinkgoHelper()
	rd := s.distribution("1")
	s.create(ctx, rd)
	s.given(ctx, 6, "1")
	change(ctx, s, rd, func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Resource = s.distribution("2").Spec.Resource })
	s.given(ctx, 6, "2")
	change(ctx, s, rd, func(rd *v1alpha1.ResourceDistribution) {
		for i := 3; i < 6; i++ {
			rd.Spec.Targets.ExcludedNamespaces = append(rd.Spec.Targets.ExcludedNamespaces,
				v1alpha1.NamespaceReference{Name: v1alpha1.NamespaceName(s.own(fmt.Sprint("t", i)))})
		}
	})
	s.given(ctx, 3, "2")
	s.remove(ctx, rd)
	s.given(ctx, 0, "")
}

// adoptable is a tenant, and a namespace that may be placed below it.
func adoptable(ctx context.Context, s *scene) {
	GinkgoHelper()
	tenant(ctx, s)
	root := build.Namespace(s.own("payments"))
	s.exist(ctx, root)
	s.create(ctx, build.Source(build.ConfigMap(s.own("payments"), "source", "1"), v1alpha1.ModeUpdate))
	s.create(ctx, build.Annotated(build.Namespace(s.own("legacy")), v1alpha1.AnnotationAdopt, string(s.tenantUID(ctx))))
	s.plant(ctx, s.own("legacy"))
}

func places(ctx context.Context, s *scene) {
	GinkgoHelper()
	placed := build.Hierarchy(s.own("legacy"), build.Below(s.own("payments")))
	s.create(ctx, placed)
	s.exist(ctx, build.ConfigMap(s.own("legacy"), "source", ""))
	change(ctx, s, placed, func(hc *v1alpha1.HierarchyConfiguration) {
		hc.Spec.RequiredChildren = []v1alpha1.RequiredChild{v1alpha1.RequiredChild(s.own("required"))}
	})
	s.bound(ctx, "legacy", "required")
	s.exist(ctx, build.ConfigMap(s.own("required"), "source", ""))
	change(ctx, s, placed, func(hc *v1alpha1.HierarchyConfiguration) { hc.Spec = v1alpha1.HierarchyConfigurationSpec{} })
	s.gone(ctx, build.ConfigMap(s.own("legacy"), "source", ""), build.ConfigMap(s.own("required"), "source", ""))
	s.remove(ctx, placed)
}
