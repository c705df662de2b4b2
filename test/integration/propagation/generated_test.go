package propagation_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("what is generated", Ordered, func() {
	var f *family
	BeforeAll(func(ctx SpecContext) {
		f = grow(ctx, start(ctx, setup{
			Propagation: "  generators: [{group: example.com, kind: Widget}, {group: example.com, kind: Missing}]\n",
			Gates:       "PropagateGenerated: true",
		}))
	})
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, f.World) })

	It("PROP-G1 a Secret that appears 20 s after its generator with annotation update is labelled and copied soon; without the gate, it "+
		"gets no label and no copy", func(ctx SpecContext) {
		closed := grow(ctx, world)
		unlabelled := closed.generator(ctx, closed.acme, "w")
		generator := f.generator(ctx, f.acme, "w")
		s, m := f.generated(generator, "s"), build.ConfigMap(f.acme, "m", "1")
		m.OwnerReferences = s.OwnerReferences
		f.staysAbsent(ctx, s, f.acme) // the generator takes its time
		l := f.ledger(ctx, "secrets")
		f.create(ctx, s, m)
		f.copied(ctx, s, f.tree()...)
		f.copied(ctx, m, f.tree()...)
		l.come(ctx, counts{"patch": 1, "create": 3})
		Expect(at(ctx, f, s, f.acme).Labels).To(HaveKeyWithValue(v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		Expect(at(ctx, f, s, f.a).OwnerReferences).To(BeEmpty(), "a copy has no owner in another namespace")

		s = closed.generated(unlabelled, "s")
		closed.create(ctx, s)
		closed.staysAbsent(ctx, s, closed.tree()...)
		Expect(at(ctx, closed, s, closed.acme).Labels).NotTo(HaveKey(v1alpha1.LabelPropagate))
	})

	It("PROP-G2 only the controller in the object's own namespace, which is in a tree, counts; a user's label stays; the operator's label "+
		"follows the annotation, and is removed with the copies", func(ctx SpecContext) {
		generator, elsewhere := f.generator(ctx, f.acme, "w"), f.generator(ctx, f.zeta, "w")
		plain := f.generated(generator, "plain")
		plain.OwnerReferences[0].Controller = nil
		foreign := f.generated(elsewhere, "foreign") // the garbage collector deletes it, because its namespace has no such owner
		foreign.Namespace = f.acme
		excepted := build.Source(f.generated(generator, "excepted"), v1alpha1.ModeNone)
		wanted := build.Source(f.generated(generator, "wanted"), v1alpha1.ModeUpdate)
		outside := f.generated(f.generator(ctx, f.solo, "w"), "outside")
		ours := f.generated(generator, "ours")
		l := f.ledger(ctx, "secrets")
		f.create(ctx, plain, foreign, excepted, wanted, outside, ours)
		f.copied(ctx, wanted, f.tree()...)
		f.copied(ctx, ours, f.tree()...)
		l.come(ctx, counts{"patch": 1, "create": 6})
		Expect(f.labelOf(ctx, plain)).To(BeEmpty())
		Expect(f.labelOf(ctx, excepted)).To(Equal(v1alpha1.ModeNone))

		change(ctx, f, generator, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationPropagateGenerated: v1alpha1.ModeCreate})
		})
		Eventually(ctx, f.labelOf).WithArguments(ours).Should(Equal(v1alpha1.ModeCreate), explain(f.World))
		change(ctx, f, generator, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationPropagateGenerated: v1alpha1.ModeUpdate})
		})
		Eventually(ctx, f.labelOf).WithArguments(ours).Should(Equal(v1alpha1.ModeUpdate), explain(f.World))
		f.copied(ctx, ours, f.tree()...)
		change(ctx, f, generator, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		Eventually(ctx, f.labelOf).WithArguments(ours).Should(BeEmpty(), explain(f.World))
		f.absent(ctx, ours, f.tree()...)
		f.staysCopied(ctx, wanted, f.tree()...)
		Expect(f.labelOf(ctx, wanted)).To(Equal(v1alpha1.ModeUpdate))
		Expect(f.labelOf(ctx, excepted)).To(Equal(v1alpha1.ModeNone))
	})

	It("PROP-G3 when a user removes the operator's label, it is restored five times; then Event DriftLoop is sent, and after the sixth "+
		"removal there is no label", func(ctx SpecContext) {
		s := f.generated(f.generator(ctx, f.acme, "w"), "s")
		f.create(ctx, s)
		for range 5 {
			Eventually(ctx, f.labelOf).WithArguments(s).Should(Equal(v1alpha1.ModeUpdate), explain(f.World))
			f.label(ctx, s, v1alpha1.LabelPropagate, "")
		}
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonDriftLoop).Should(HaveLen(1), explain(f.World))
		Eventually(ctx, f.labelOf).WithArguments(s).Should(Equal(v1alpha1.ModeUpdate), explain(f.World))
		f.label(ctx, s, v1alpha1.LabelPropagate, "")
		Consistently(ctx, f.labelOf).WithArguments(s).WithTimeout(test.Quiet(soon)).Should(BeEmpty())
	})

	It("PROP-G5 after a restart, and after a restart without the right to list generators, the labelled object gets no write; label and "+
		"copies stay", func(ctx SpecContext) {
		generator := f.generator(ctx, f.acme, "w")
		s, next, plain := f.generated(generator, "s"), f.generated(generator, "next"), build.Source(build.Secret(f.acme, "plain", "1"),
			v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		l := f.ledger(ctx, "secrets")
		Expect(f.Operator.Restart(ctx)).To(Succeed())
		f.create(ctx, next)
		f.copied(ctx, next, f.tree()...) // by then, the operator leads, and knows the generator
		l.come(ctx, counts{"patch": 1, "create": 3})

		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "warren-kinds-configured"}}
		Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		rules := role.Rules
		change(ctx, f, role, func(r *rbacv1.ClusterRole) {
			r.Rules = slices.DeleteFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.APIGroups, "example.com") })
		})
		DeferCleanup(func(ctx SpecContext) {
			change(ctx, f, role, func(r *rbacv1.ClusterRole) { r.Rules = rules })
			f.mayListWidgets(ctx, true)
		})
		f.mayListWidgets(ctx, false)
		Expect(f.Operator.Restart(ctx)).To(Succeed())
		f.create(ctx, plain)
		f.copied(ctx, plain, f.tree()...) // by then, the operator leads
		l.come(ctx, counts{"patch": 1, "create": 6})
		f.staysCopied(ctx, s, f.tree()...)
	})

	It("PROP-G7 while the generator's annotation is Update, label and copies stay, and InvalidSource on the Secret names that value and "+
		"the three valid ones", func(ctx SpecContext) {
		generator := f.generator(ctx, f.acme, "w")
		s := f.generated(generator, "s")
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		patch := func(value string) {
			GinkgoHelper()
			Expect(f.Admin().Patch(ctx, generator, client.RawPatch(types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationPropagateGenerated+`":"`+value+`"}}}`)))).To(Succeed())
		}
		patch("Update")
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonInvalidSource).
			Should(ContainElement(ContainSubstring(`is "Update", and must be create, update or none`)))
		f.staysCopied(ctx, s, f.tree()...)
		patch("none")
		f.absent(ctx, s, f.a, f.a1, f.b)
	})

	It("PROP-G6 after the generator's kind is taken from the configuration, and after a restart, label and copies stay; when a user "+
		"removes the label, the copies are deleted", func(ctx SpecContext) {
		generator := f.generator(ctx, f.acme, "w")
		s := f.generated(generator, "s")
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		DeferCleanup(func(ctx SpecContext) { Expect(f.Operator.Configure(ctx, f.OperatorConfig)).To(Succeed()) })
		Expect(f.Operator.Configure(ctx, strings.Replace(f.OperatorConfig, "{group: example.com, kind: Widget}, ", "", 1))).To(Succeed())
		f.staysCopied(ctx, s, f.tree()...)
		Expect(f.Operator.Restart(ctx)).To(Succeed())
		f.staysCopied(ctx, s, f.tree()...)
		Expect(f.Admin().Patch(ctx, s.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelPropagate+`":null}}}`)))).To(Succeed())
		f.absent(ctx, s, f.a, f.a1, f.b)
	})

	It("PROP-G4 the operator's token may set label propagate=update on a Secret with a controller; not on others or on a Role, nor none, "+
		"nor another label, data, annotation or ownerReferences", func(ctx SpecContext) {
		generator := f.generator(ctx, f.acme, "w")
		change(ctx, f, generator, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		s, plain := f.generated(generator, "s"), build.Secret(f.acme, "plain", "1")
		role := build.Role(f.acme, "r", "get")
		role.OwnerReferences = s.OwnerReferences
		f.create(ctx, s, plain, role)
		apply := func(object client.Object, body string) error {
			object = object.DeepCopyObject().(client.Object)
			return f.As(controlplane.Operator).Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(body)), client.DryRunAll,
				client.FieldOwner(copies.GeneratedManager))
		}
		label := func(value string) string { return `"labels":{"` + v1alpha1.LabelPropagate + `":` + value + `}` }
		Expect(apply(s, `{"metadata":{`+label(`"update"`)+`}}`)).To(Succeed())
		const refused = "the operator may change and delete only what it wrote"
		for reason, err := range map[string]error{
			"no controller": apply(plain, `{"metadata":{`+label(`"update"`)+`}}`),
			"mode none":     apply(s, `{"metadata":{`+label(`"none"`)+`}}`),
			"content":       apply(s, `{"metadata":{`+label(`"update"`)+`},"data":{"more":"eA=="}}`),
			"another label": apply(s, `{"metadata":{"labels":{"team":"x"}}}`),
			"annotations":   apply(s, `{"metadata":{`+label(`"update"`)+`,"annotations":{"a":"b"}}}`),
			"owners":        apply(s, `{"metadata":{`+label(`"update"`)+`,"ownerReferences":null}}`),
		} {
			Expect(err).To(MatchError(ContainSubstring(refused)), reason)
		}
		Expect(apply(role, `{"metadata":{`+label(`"update"`)+`}}`)).To(MatchError(ContainSubstring("cannot patch")), "rights are never handed on")
	})
})

// generator makes a Widget with the annotation that asks for the propagation of what it controls.
func (f *family) generator(ctx context.Context, namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	w := widget("Widget", namespace, name, "red")
	w.SetAnnotations(map[string]string{v1alpha1.AnnotationPropagateGenerated: v1alpha1.ModeUpdate})
	f.create(ctx, w)
	return w
}

// mayListWidgets waits until the API server knows of the operator's rights on generators.
func (f *family) mayListWidgets(ctx context.Context, may bool) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               controlplane.Operator,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "example.com", Resource: "widgets"},
		}}
		err := f.Admin().Create(ctx, review)
		return review.Status.Allowed, err
	}).Should(Equal(may))
}

// generated is a Secret that a Widget controls, as its controller would make it.
func (f *family) generated(by *unstructured.Unstructured, name string) *corev1.Secret {
	s := build.Secret(by.GetNamespace(), name, "1")
	s.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: by.GetAPIVersion(), Kind: by.GetKind(), Name: by.GetName(), UID: by.GetUID(), Controller: new(true),
	}}
	return s
}

// labelOf is the value of label propagate on a source.
func (f *family) labelOf(ctx context.Context, object client.Object) (string, error) {
	u, err := f.whole(ctx, object, object.GetNamespace())
	return u.GetLabels()[v1alpha1.LabelPropagate], err
}
