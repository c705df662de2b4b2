package fault_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// forged is a Secret with the marks of a copy of a source in from. The operator has not written its hash.
func forged(namespace, name, from string) *corev1.Secret {
	return build.Annotated(build.Secret(namespace, name, "forged", v1alpha1.LabelInheritedFrom, from),
		v1alpha1.AnnotationSourceHash, "update:0123456789abcdef:0123456789abcdef0123456789abcdef")
}

// impossible are subjects that RBAC, or the schema, takes for invalid.
func impossible() []v1alpha1.Subject {
	return []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser}, {Kind: v1alpha1.SubjectGroup}, {Kind: "Robot", Name: "r2"},
		build.ServiceAccount("default", "Not_A_Name"), build.ServiceAccount("", "nowhere")}
}

// stored are the invalid objects of FLT-F44.
type stored struct {
	*scene
	small                      *build.LNamespace // a tenant whose limits become negative
	misnamed                   *v1alpha1.HierarchyConfiguration
	stray                      *corev1.Namespace
	forgedAlone, forgedInAPlan *corev1.Secret
	versions                   map[client.Object]string
}

// furnish makes the valid objects before the walls are taken away: a tenant with three sub-namespaces, and a tenant with one.
func (f *stored) furnish(ctx context.Context) {
	GinkgoHelper()
	f.withoutClaims = true
	family(ctx, f.scene)
	f.small = build.Tenant(f.own("small"))
	f.create(ctx, f.source("s", "1"), f.small.Object())
	f.exist(ctx, build.Namespace(f.own("small")))
	f.create(ctx, build.SubNamespace(f.own("small"), f.own("tiny")),
		build.Source(build.Secret(f.own("small"), "s", "1"), v1alpha1.ModeUpdate))
	f.copied(ctx, "tiny", "s", "1")
	f.copied(ctx, "n1", "s", "1")
	f.copied(ctx, "n2", "s", "1")
}

// spoil stores the invalid objects.
func (f *stored) spoil(ctx context.Context) {
	GinkgoHelper()
	change(ctx, f.scene, f.payments().Object(), func(l *v1alpha1.LNamespace) { // bob is off the list, ann is on it
		l.Spec.Users = append(impossible(), build.Users(f.own("alice"), f.own("ann"))...)
		l.Spec.Managers = append(impossible(), l.Spec.Managers...)
		l.Spec.Sudoers = append(impossible(), build.Users(f.own("sue"))...)
	})
	change(ctx, f.scene, f.small.Object(), func(l *v1alpha1.LNamespace) {
		few, bytes := int32(-1), int64(-1)
		l.Spec.Limits = &v1alpha1.Limits{SubNamespaces: &few, Depth: &few, Copies: &few, Bytes: &bytes}
	})
	f.misnamed = build.Hierarchy(f.own("n1"), build.Below(f.own("small")), build.Requiring("No.Name"))
	f.misnamed.Name = "x"
	f.stray = build.Child(f.own("stray"), "No_Name")
	f.forgedAlone = forged(f.own("n2"), "alone", f.own("payments"))
	f.forgedInAPlan = forged(f.own("n2"), "later", f.own("payments"))
	f.versions = map[client.Object]string{}
	for _, object := range []client.Object{f.misnamed, f.stray, f.forgedAlone, f.forgedInAPlan} {
		f.create(ctx, object)
		f.versions[object] = object.GetResourceVersion()
	}
	f.create(ctx, build.Tenant(f.own("nobody")).UserSubjects(impossible()...).SudoerSubjects(impossible()...).Object(),
		f.source("later", "1"), build.SubNamespace(f.own("small"), f.own("more")),
		build.Source(build.Secret(f.own("small"), "more", "1"), v1alpha1.ModeUpdate))
}

// isReported waits until each invalid object that has conditions reports what is wrong with it.
func (f *stored) isReported(ctx context.Context) {
	GinkgoHelper()
	f.tenantSays(ctx, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, "SubjectRefused: ")
	nobody := build.Tenant(f.own("nobody")).Object()
	f.says(ctx, nobody, func() []metav1.Condition { return nobody.Status.Conditions }, v1alpha1.ConditionAccessReady, metav1.ConditionFalse,
		"SubjectRefused: ")
	f.subSays(ctx, "small", "more", metav1.ConditionFalse, "LimitExceeded: ")
	f.propagationSays(ctx, "small", metav1.ConditionFalse, "LimitExceeded: ")
	hc := build.Hierarchy(f.stray.Name)
	f.says(ctx, hc, func() []metav1.Condition { return hc.Status.Conditions }, v1alpha1.ConditionHalted, metav1.ConditionTrue,
		"InvalidLabels: ")
	f.propagationSays(ctx, "n2", metav1.ConditionFalse, "Conflict: ")
}

// isLeftAlone checks that nothing is done with the invalid objects, nor because of them.
func (f *stored) isLeftAlone(ctx context.Context) {
	GinkgoHelper()
	Consistently(ctx, func(g Gomega) {
		for object, version := range f.versions {
			g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(object.GetResourceVersion()).To(Equal(version), "%T %s", object, object.GetName())
		}
		tiny := build.Namespace(f.own("tiny"))
		g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(tiny), tiny)).To(Succeed())
		g.Expect(tiny.DeletionTimestamp).To(BeNil())
		n1 := build.Namespace(f.own("n1"))
		g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(n1), n1)).To(Succeed())
		g.Expect(n1.Labels).To(HaveKeyWithValue(v1alpha1.LabelParent, f.own("payments")))
		bound := &rbacv1.RoleBindingList{}
		g.Expect(f.Admin().List(ctx, bound, client.InNamespace(f.own("nobody")))).To(Succeed())
		for _, binding := range bound.Items {
			g.Expect(namesOf(binding.Subjects)).To(Or(BeEmpty(), Equal([]string{v1alpha1.SudoersGroup(f.own("nobody"))})), binding.Name)
		}
		secrets := &corev1.SecretList{}
		g.Expect(f.Admin().List(ctx, secrets, client.InNamespace(f.stray.Name))).To(Succeed())
		g.Expect(secrets.Items).To(BeEmpty())
	}).WithTimeout(test.Quiet(soon)).Should(Succeed())
	f.copied(ctx, "tiny", "s", "1")
	f.copied(ctx, "n1", "s", "1")
}

var _ = Describe("an operator that finds invalid objects", Ordered, ContinueOnFailure, func() {
	var st *stage // of its own: a CRD that changes ends the watches of every observer

	BeforeAll(func(ctx SpecContext) {
		st = newStage(ctx, devcluster.Options{})
	})

	It("FLT-F44 of a stored list with impossible subjects, the others get and lose rights as usual, and AccessReady is False, "+
		"SubjectRefused; FLT-F44 stored negative limits allow nothing new, LimitExceeded, and delete nothing; the operator doesn't end; "+
		"FLT-F44 a misnamed HierarchyConfiguration is ignored; a label parent that names no namespace is InvalidLabels; a Secret with a forged "+
		"hash stays, in Conflict where a source wants its name", func(ctx SpecContext) {
		f, neighbour := &stored{scene: st.scene("f44")}, st.scene("f44n")
		neighbour.withoutClaims = true
		family(ctx, neighbour)
		f.furnish(ctx)
		st.down()
		walls := st.tearDown(ctx)
		f.spoil(ctx)
		walls.rebuild(ctx)
		st.up(ctx)
		life := st.now()

		f.isReported(ctx)
		f.isLeftAlone(ctx)
		f.loses(ctx, f.own("bob"))
		Eventually(ctx, f.sudoers).Should(ConsistOf(f.own("sue")), f.explain)
		Eventually(ctx, f.users).Should(ConsistOf(f.own("alice"), f.own("ann")), "the sound ones of the list: %s", f.explain())
		for _, child := range []string{"n0", "n1", "n2"} {
			f.copied(ctx, child, "s", "1")
		}
		f.copied(ctx, "n0", "later", "1")
		removesSudoer(ctx, neighbour)
		sources(ctx, neighbour)
		Expect(st.now()).To(Equal(life), "it does not end")
		Expect(st.Operator.Sound()).To(Succeed())

		change(ctx, f.scene, f.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec = f.payments().Spec })
		f.ready(ctx)
		change(ctx, f.scene, f.small.Object(), func(l *v1alpha1.LNamespace) { l.Spec.Limits = nil })
		f.bound(ctx, "small", "more")
		f.copied(ctx, "tiny", "more", "1")
		f.remove(ctx, build.Tenant(f.own("nobody")).Object())
		f.remove(ctx, f.misnamed)
		f.remove(ctx, f.stray)
	})

	It("writes nothing in the end, and has never ended by itself", func(ctx SpecContext) {
		st.rests(ctx)
		st.checkProcess()
	})
})
