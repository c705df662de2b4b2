package propagation_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a template", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	// source makes a Secret that is a source.
	source := func(ctx context.Context, namespace, name, mode string) *corev1.Secret {
		s := build.Source(build.Secret(namespace, name, namespace), mode)
		f.create(ctx, s)
		return s
	}
	refer := func(ctx context.Context, namespace, template string) {
		f.labelNamespace(ctx, namespace, v1alpha1.LabelTemplate, template)
	}
	instance := func() []string { return append(f.tree(), f.acme) }
	// vanish deletes a namespace and waits until it is gone.
	vanish := func(ctx context.Context, name string) {
		f.remove(ctx, build.Namespace(name))
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(f.Admin().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}))
		}).Should(BeTrue(), "the namespace controller empties %s", name)
	}

	It("PROP-T1 once acme has template=tmpl, a source in tmpl is copied to acme and all namespaces below, with inherited-from=tmpl: 4 "+
		"writes", func(ctx SpecContext) {
		s := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate)
		l := f.ledger(ctx, "secrets")
		refer(ctx, f.acme, f.tmpl)
		f.copied(ctx, s, instance()...)
		l.come(ctx, counts{"create": 4})
	})

	It("PROP-T2 a template's template comes first: its s is copied to acme and below, and the nearer template reports Conflict; its u is "+
		"copied to the nearer template too", func(ctx SpecContext) {
		t2 := f.prefix + "t2"
		f.create(ctx, build.Template(t2, v1alpha1.LabelTemplate, f.tmpl))
		refer(ctx, f.acme, t2)
		// inner is made first: after outer, a copy of outer would have the name.
		inner := source(ctx, t2, "s", v1alpha1.ModeUpdate)
		outer := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate)
		u := source(ctx, f.tmpl, "u", v1alpha1.ModeUpdate)
		f.copied(ctx, outer, instance()...)
		f.copied(ctx, u, append(instance(), t2)...)
		Expect(at(ctx, f, inner, t2).ResourceVersion).To(Equal(inner.ResourceVersion))
		f.says(ctx, map[string]string{t2: fmt.Sprintf("Conflict: Secret %q from %q", "s", f.tmpl)})
	})

	It("PROP-T3 a plain namespace with template=tmpl gets copies of its sources; the operator changes no label and no annotation of that "+
		"Namespace", func(ctx SpecContext) {
		s := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate)
		before := at(ctx, f, build.Namespace(f.solo), "")
		refer(ctx, f.solo, f.tmpl)
		f.copied(ctx, s, f.solo)
		before.Labels[v1alpha1.LabelTemplate] = f.tmpl
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			now := &corev1.Namespace{}
			g.Expect(f.Admin().Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
			g.Expect(now.Labels).To(Equal(before.Labels))
			g.Expect(now.Annotations).To(Equal(before.Annotations))
		}).WithTimeout(test.Quiet(soon)).Should(Succeed())
	})

	It("PROP-T4 when template is removed from acme, copies in mode update are deleted in the "+
		"whole tree, and copies in mode create stay", func(ctx SpecContext) {
		s, kept := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate), source(ctx, f.tmpl, "kept", v1alpha1.ModeCreate)
		refer(ctx, f.acme, f.tmpl)
		f.copied(ctx, s, instance()...)
		f.copied(ctx, kept, instance()...)
		refer(ctx, f.acme, "")
		f.absent(ctx, s, instance()...)
		f.staysCopied(ctx, kept, instance()...)
	})

	It("PROP-T5 when acme's template changes to another, each namespace gets copies from the new one after all copies from the old one "+
		"are deleted", func(ctx SpecContext) {
		tmpl2 := f.prefix + "tmpl2"
		f.create(ctx, build.Template(tmpl2))
		s, x := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate), source(ctx, f.tmpl, "x", v1alpha1.ModeUpdate)
		s2, y := source(ctx, tmpl2, "s", v1alpha1.ModeUpdate), source(ctx, tmpl2, "y", v1alpha1.ModeUpdate)
		refer(ctx, f.acme, f.tmpl)
		f.copied(ctx, s, instance()...)
		f.copied(ctx, x, instance()...)
		l := f.ledger(ctx, "secrets")
		refer(ctx, f.acme, tmpl2)
		f.copied(ctx, s2, instance()...)
		f.copied(ctx, y, instance()...)
		f.absent(ctx, x, instance()...)
		l.come(ctx, counts{"delete": 8, "create": 8})
		l.removesFirst(ctx, instance()...)
	})

	It("PROP-T6 while acme's template is missing, copies from the former one stay, and acme's own sources are still propagated; when the "+
		"template appears, all copies are correct", func(ctx SpecContext) {
		old := source(ctx, f.tmpl, "old", v1alpha1.ModeUpdate)
		refer(ctx, f.acme, f.tmpl)
		f.copied(ctx, old, instance()...)
		before := at(ctx, f, old, f.a)
		missing := f.prefix + "missing"
		refer(ctx, f.acme, missing)
		own := source(ctx, f.acme, "own", v1alpha1.ModeUpdate)
		f.copied(ctx, own, f.tree()...)
		change(ctx, f, own, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
		f.copied(ctx, own, f.tree()...)
		f.remove(ctx, own)
		f.absent(ctx, own, f.tree()...)
		f.staysCopied(ctx, old, instance()...)
		Expect(at(ctx, f, old, f.a).ResourceVersion).To(Equal(before.ResourceVersion))
		f.create(ctx, build.Template(missing))
		late := source(ctx, missing, "late", v1alpha1.ModeUpdate)
		f.copied(ctx, late, instance()...)
		f.absent(ctx, old, instance()...)
	})

	It("PROP-T7 when a template in use is deleted, no copy is written or deleted before it exists again with equal sources; then the "+
		"copies equal them", func(ctx SpecContext) {
		s := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate)
		refer(ctx, f.acme, f.tmpl)
		f.copied(ctx, s, instance()...)
		l := f.ledger(ctx, "secrets")
		vanish(ctx, f.tmpl)
		Consistently(ctx, l.writes).WithTimeout(test.Quiet(10*time.Second)).Should(BeEmpty(), l.String)
		Expect(f.standing(ctx, s, instance()...)).To(HaveLen(4))
		again := build.Source(build.Secret(f.tmpl, "s", f.tmpl), v1alpha1.ModeUpdate)
		f.create(ctx, build.Template(f.tmpl), again)
		f.copied(ctx, again, instance()...)
		f.staysCopied(ctx, again, instance()...)
	})

	It("PROP-T8 while two templates reference each other, nothing from them is written or deleted; after one reference is removed, all "+
		"copies are correct", func(ctx SpecContext) {
		t2 := f.prefix + "t2"
		f.create(ctx, build.Template(t2))
		refer(ctx, f.tmpl, t2)
		refer(ctx, f.acme, f.tmpl)
		s, u := source(ctx, f.tmpl, "s", v1alpha1.ModeUpdate), source(ctx, t2, "u", v1alpha1.ModeUpdate)
		f.copied(ctx, s, instance()...)
		f.copied(ctx, u, append(instance(), f.tmpl)...)
		refer(ctx, t2, f.tmpl)
		Eventually(ctx, func(ctx context.Context) (string, error) {
			c, err := f.Reported(ctx, f.acme, v1alpha1.ConditionMetadataSynced)
			return c.Message, err
		}).Should(ContainSubstring("is in a cycle"), "the operator knows of the cycle")
		l := f.ledger(ctx, "secrets")
		change(ctx, f, s, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
		f.remove(ctx, u)
		fresh := source(ctx, f.tmpl, "fresh", v1alpha1.ModeUpdate)
		l.rests(ctx, counts{})
		refer(ctx, t2, "")
		f.copied(ctx, s, instance()...)
		f.copied(ctx, fresh, instance()...)
		f.absent(ctx, u, append(instance(), f.tmpl)...)
	})
})
