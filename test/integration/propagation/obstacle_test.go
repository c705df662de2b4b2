package propagation_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("where something else stands", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	unchanged := func(ctx context.Context, objects ...client.Object) {
		GinkgoHelper()
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			for _, object := range objects {
				now := object.DeepCopyObject().(client.Object)
				g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(object), now)).To(Succeed())
				g.Expect(now.GetResourceVersion()).To(Equal(object.GetResourceVersion()))
			}
		}).WithTimeout(test.Quiet(soon)).Should(Succeed())
	}

	It("PROP-K1 an unrelated Secret a/s stays unchanged; a1 and b get copies; conditions Conflict on a, with name and source, and "+
		"DescendantConflict on acme; Event Conflict on acme/s; PROP-K2 after a/s is deleted, a gets its copy within 60 s, Event "+
		"ConflictResolved is sent, and both namespaces report InSync", func(ctx SpecContext) {
		own := build.Secret(f.a, "s", "own")
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, own, s)
		f.copied(ctx, s, f.a1, f.b)
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflict).Should(ConsistOf(ContainSubstring(f.a)))
		f.says(ctx, map[string]string{
			f.a: fmt.Sprintf("Conflict: Secret %q from %q", "s", f.acme), f.acme: fmt.Sprintf("DescendantConflict: %s: Secret %q", f.a, "s"),
		})
		l := f.ledger(ctx, "secrets")
		unchanged(ctx, own)
		Expect(l.writes(ctx)).To(BeEmpty(), "a conflict is not tried again by POST")
		f.remove(ctx, own)
		Eventually(ctx, f.differs).WithArguments(s, f.a).Should(Succeed())
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflictResolved).Should(HaveLen(1))
		f.says(ctx, map[string]string{f.a: "InSync", f.acme: "InSync"})
	})

	It("as a source of its own, the copy from above comes soon after it has gone", func(ctx SpecContext) {
		ownRole, ownSecret := build.Role(f.a, "s", "list"), build.Source(build.Secret(f.a, "s", "own"), v1alpha1.ModeUpdate)
		role, s := build.Role(f.acme, "s", "get"), build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, ownRole, ownSecret, role, s)
		f.copied(ctx, role, f.a1, f.b)
		f.copied(ctx, s, f.a1, f.b)
		Eventually(ctx, f.events).WithArguments(role, v1alpha1.ReasonConflict).Should(HaveLen(1))
		unchanged(ctx, ownRole, ownSecret)
		f.remove(ctx, ownRole, ownSecret)
		f.copied(ctx, role, f.a)
		f.copied(ctx, s, f.a)
	})

	It("PROP-K4 with policies off, a copy's export, created in another namespace, is never changed or deleted; where the source is "+
		"wanted, it is a conflict until the source is deleted", func(ctx SpecContext) {
		f = grow(ctx, unguarded)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, build.Annotated(s, v1alpha1.AnnotationSelect, "!other"))
		f.copied(ctx, s, f.tree()...)
		b2, wanted := f.prefix+"b2", f.prefix+"wanted"
		f.create(ctx, build.Child(b2, f.acme, "other", "true"), build.Namespace(wanted))
		var exported []client.Object
		for _, namespace := range []string{b2, f.z, wanted} {
			object := at(ctx, f, s, f.a)
			object.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "s", Labels: object.Labels, Annotations: object.Annotations}
			f.create(ctx, object)
			exported = append(exported, object)
		}
		f.move(ctx, wanted, f.acme)
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflict).Should(ConsistOf(ContainSubstring(wanted)))
		unchanged(ctx, exported...)
		f.remove(ctx, s)
		f.absent(ctx, s, f.tree()...)
		unchanged(ctx, exported...)
	})

	It("PROP-K5 with policies off, Secrets with inherited-from=acme and a forged hash are never changed or deleted", func(ctx SpecContext) {
		f = grow(ctx, unguarded)
		forge := func(name string) *corev1.Secret {
			s := build.Secret(f.b, name, "forged", v1alpha1.LabelInheritedFrom, f.acme)
			return build.Annotated(s, v1alpha1.AnnotationSourceHash, "update:0123456789abcdef:0123456789abcdef0123456789abcdef")
		}
		alone, inTheWay := forge("alone"), forge("s")
		f.create(ctx, alone, inTheWay)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.a, f.a1)
		unchanged(ctx, alone, inTheWay)
		f.remove(ctx, s)
		f.absent(ctx, s, f.a, f.a1)
		unchanged(ctx, alone, inTheWay)
	})

	It("PROP-K7 a copy that a foreign finalizer holds in deletion gets no PUT when it is wanted again, and is no conflict; after it is "+
		"gone, a new copy is created", func(ctx SpecContext) {
		f = grow(ctx, unguarded)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		old := at(ctx, f, s, f.a)
		change(ctx, f, old, func(s *corev1.Secret) { s.Finalizers = []string{"example.com/held"} })
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeNone)
		f.absent(ctx, s, f.a1, f.b)
		Eventually(ctx, func(ctx context.Context) *metav1.Time { return at(ctx, f, s, f.a).DeletionTimestamp }).ShouldNot(BeNil())
		old = at(ctx, f, s, f.a)
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		f.copied(ctx, s, f.a1, f.b)
		l := f.ledger(ctx, "secrets")
		unchanged(ctx, old)
		Expect(l.writes(ctx)).To(BeEmpty(), l.String)
		change(ctx, f, old, func(s *corev1.Secret) { s.Finalizers = nil })
		f.copied(ctx, s, f.a)
		Expect(at(ctx, f, s, f.a).UID).NotTo(Equal(old.UID))
		Expect(f.events(ctx, s, v1alpha1.ReasonConflict)).To(BeEmpty())
	})

	It("PROP-I10 an object with the name of a copy, whose deletion never ends, gets no POST; "+
		"Propagated of other namespaces is reported", func(ctx SpecContext) {
		own := build.Secret(f.a, "s", "own")
		own.Finalizers = []string{"example.com/held"}
		f.create(ctx, own)
		f.remove(ctx, own)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		other := build.Secret(f.b, "s", "own")
		f.create(ctx, other, s)
		f.copied(ctx, s, f.a1)
		f.says(ctx, map[string]string{f.b: fmt.Sprintf("Conflict: Secret %q from %q", "s", f.acme)})
		own = at(ctx, f, s, f.a)
		l := f.ledger(ctx, "secrets")
		unchanged(ctx, own, other)
		Expect(l.writes(ctx)).To(BeEmpty(), l.String)
		f.remove(ctx, other)
		f.copied(ctx, s, f.b)
		f.says(ctx, map[string]string{f.b: "InSync"})
		change(ctx, f, own, func(s *corev1.Secret) { s.Finalizers = nil })
		f.copied(ctx, s, f.a)
	})

	It("PROP-I2 while quota count/secrets is used up in a, a1 and b soon have copies, and a reports Rejected with \"exceeded quota\"; "+
		"once it is raised, a has one within retry.max", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.a, Name: "secrets"}}
		quota.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("0")}
		f.create(ctx, quota)
		Eventually(ctx, func(ctx context.Context) error {
			return f.Admin().Create(ctx, build.Secret(f.a, "s", "1"), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("exceeded quota")))
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.a1, f.b)
		f.says(ctx, map[string]string{f.a: fmt.Sprintf("Rejected: Secret %q from %q", "s", f.acme)})
		Expect(f.report(ctx, f.a)).To(ContainSubstring("exceeded quota"))
		change(ctx, f, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard["count/secrets"] = resource.MustParse("5") })
		f.copied(ctx, s, f.a)
		f.says(ctx, map[string]string{f.a: "InSync"})
	})

	It("PROP-K3 if 30 namespaces have an unrelated object of the source's name, the message on acme names ten and ends with \"and 20 "+
		"more\"; one Event is sent", func(ctx SpecContext) {
		const many = 30
		for i := range many {
			child := fmt.Sprintf("%sk%d", f.prefix, i)
			f.create(ctx, build.Child(child, f.b), build.Secret(child, "s", "own"))
		}
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		Eventually(ctx, f.report).WithArguments(f.acme).Should(And(HavePrefix("DescendantConflict: "), HaveSuffix("; and 20 more"),
			WithTransform(func(text string) int { return strings.Count(text, "Secret") }, Equal(10))))
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflict).Should(HaveLen(1))
		f.remove(ctx, s) // else the operator looks at 30 obstacles again and again until the suite ends
	})

	It("PROP-I8 while a policy refuses ConfigMap m in b, a and a1 soon have copies, and b reports Rejected; after the policy is removed, "+
		"the next try succeeds", func(ctx SpecContext) {
		policy, bound := build.Policy(f.b, admissionv1.Create, corev1.SchemeGroupVersion.WithResource("configmaps"),
			"object.metadata.name != 'm'", "no m here")
		f.create(ctx, policy, bound)
		DeferCleanup(func(ctx SpecContext) { _ = client.IgnoreNotFound(f.Admin().Delete(ctx, bound)) })
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsInvalid(f.Admin().Create(ctx, build.ConfigMap(f.b, "m", "1"), client.DryRunAll))
		}).Should(BeTrue(), "the policy is in force")
		m := build.Source(build.ConfigMap(f.acme, "m", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, m)
		f.copied(ctx, m, f.a, f.a1)
		Eventually(ctx, f.events).WithArguments(m, v1alpha1.ReasonCopyRejected).Should(ConsistOf(ContainSubstring("no m here")))
		f.says(ctx, map[string]string{f.b: fmt.Sprintf("Rejected: ConfigMap %q from %q", "m", f.acme)})
		f.remove(ctx, bound)
		Eventually(ctx, f.differs).WithArguments(m, f.b).Should(Succeed())
		f.says(ctx, map[string]string{f.b: "InSync"})
	})
})
