package propagation_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a source in mode create", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	given := func(ctx context.Context) *corev1.Secret {
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeCreate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		return s
	}
	set := func(ctx context.Context, s *corev1.Secret, value string) {
		change(ctx, f, s, func(s *corev1.Secret) { s.Data["key"] = []byte(value) })
	}
	valueIn := func(namespace string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			s := &corev1.Secret{}
			err := f.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: "s"}, s)
			return string(s.Data["key"]), err
		}
	}

	It("PROP-C1 a source in mode create is copied once; after a change of its data, the operator writes nothing", func(ctx SpecContext) {
		s := given(ctx)
		l := f.ledger(ctx, "secrets")
		set(ctx, s, "2")
		l.rests(ctx, counts{})
		Expect(valueIn(f.a)(ctx)).To(Equal("1"))
	})

	It("PROP-C2 a tenant's user may edit a copy in mode create, and the edit stays; after its deletion, the source's present content is "+
		"copied; a change of its inherited-from is refused", func(ctx SpecContext) {
		f.create(ctx, build.RoleBinding(f.a, "tenant", "admin", build.RBACUser("alice")))
		s := given(ctx)
		l := f.ledger(ctx, "secrets")
		own := at(ctx, f, s, f.a)
		own.Data["key"] = []byte("mine")
		Eventually(ctx, func(ctx context.Context) error { return f.As("alice").Update(ctx, own.DeepCopy()) }).Should(Succeed(),
			"alice's right arrives")
		l.rests(ctx, counts{})
		Expect(valueIn(f.a)(ctx)).To(Equal("mine"))
		set(ctx, s, "2")
		// When a later source is copied, the operator has seen the present version of this one, too: one watch brings both.
		later := build.Source(build.Secret(f.acme, "later", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, later)
		f.copied(ctx, later, f.tree()...)
		l = f.ledger(ctx, "secrets")
		Expect(f.As("alice").Delete(ctx, build.Secret(f.a, "s", ""))).To(Succeed())
		Eventually(ctx, valueIn(f.a)).Should(Equal("2"))
		l.come(ctx, counts{"create": 1})
		own = at(ctx, f, s, f.a)
		Expect(f.As("alice").Update(ctx, build.Labelled(own.DeepCopy(), v1alpha1.LabelInheritedFrom, f.zeta))).
			To(beRefused("s is a copy of " + f.acme + "/s; change the source instead"))
		Expect(at(ctx, f, s, f.a)).To(Equal(own))
	})

	It("PROP-C3 copies in mode create stay when their namespace moves to another tree, and "+
		"when the source loses its label or is deleted", func(ctx SpecContext) {
		s := given(ctx)
		l := f.ledger(ctx, "secrets")
		f.move(ctx, f.a, f.zeta)
		l.rests(ctx, counts{})
		f.label(ctx, s, v1alpha1.LabelPropagate, "")
		l.rests(ctx, counts{})
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeCreate)
		f.remove(ctx, s)
		l.rests(ctx, counts{})
		Expect(f.standing(ctx, s, f.tree()...)).To(HaveLen(3))
	})

	It("PROP-C4 where an unrelated Secret has the name of a source in mode create, it stays, without condition or Event; within 60 s "+
		"after its deletion, a copy is created", func(ctx SpecContext) {
		own := build.Secret(f.a, "s", "own")
		f.create(ctx, own)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeCreate)
		f.create(ctx, s)
		f.copied(ctx, s, f.a1, f.b)
		Consistently(ctx, valueIn(f.a)).Should(Equal("own"))
		Expect(at(ctx, f, own, f.a).ResourceVersion).To(Equal(own.ResourceVersion))
		Expect(f.events(ctx, s, "")).To(BeEmpty())
		Expect(f.reports(ctx, f.a)).To(BeEmpty(), "no condition")
		f.remove(ctx, own)
		Eventually(ctx, valueIn(f.a)).Should(Equal("1"))
		f.copied(ctx, s, f.a)
	})

	It("PROP-C5 when a source changes from mode create to update, its copies lose edits; back in create, later edits stay. Each change is "+
		"one write per copy", func(ctx SpecContext) {
		s := given(ctx)
		set(ctx, build.Secret(f.a, "s", ""), "mine")
		l := f.ledger(ctx, "secrets")
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		f.copied(ctx, s, f.tree()...)
		// An attempt is refused, and repeated, if the operator sees the edit of the copy after the label.
		Eventually(ctx, l.accepted).Should(Equal(counts{"update": 3}), l.String)
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeCreate)
		f.copied(ctx, s, f.tree()...)
		Eventually(ctx, l.accepted).Should(Equal(counts{"update": 6}), l.String)
		before := l.writes(ctx)
		set(ctx, build.Secret(f.a, "s", ""), "mine again")
		l.rests(ctx, before)
		Expect(valueIn(f.a)(ctx)).To(Equal("mine again"))
	})

	It("PROP-C6 when a source changes from mode create to update, only the namespace with an "+
		"unrelated Secret of its name is in conflict", func(ctx SpecContext) {
		own := build.Secret(f.b, "s", "own")
		f.create(ctx, own)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeCreate)
		f.create(ctx, s)
		f.copied(ctx, s, f.a, f.a1)
		f.label(ctx, s, v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		f.copied(ctx, s, f.a, f.a1)
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflict).Should(HaveLen(1), explain(world))
		Consistently(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflict).Should(ConsistOf(ContainSubstring(f.b)))
		Expect(at(ctx, f, own, f.b).ResourceVersion).To(Equal(own.ResourceVersion))
	})
})
