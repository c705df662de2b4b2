package propagation_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

var _ = Describe("a selector", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	selecting := func(ctx context.Context, source client.Object, selector string) {
		change(ctx, f, source, func(source client.Object) { build.Annotated(source, v1alpha1.AnnotationSelect, selector) })
	}

	It("PROP-S1 a copy is created soon after its namespace gets the label that annotation select names, and is deleted soon after the "+
		"namespace loses it", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, build.Annotated(s, v1alpha1.AnnotationSelect, "tier=web"))
		f.staysAbsent(ctx, s, f.tree()...)
		f.labelNamespace(ctx, f.a, "tier", "web")
		f.copied(ctx, s, f.a)
		f.staysAbsent(ctx, s, f.a1, f.b)
		f.labelNamespace(ctx, f.a, "tier", "")
		f.absent(ctx, s, f.a)
	})

	It("PROP-S2 select understands depth labels with =, ! and >, sets of namespace names, and the empty text for all; a switch from one "+
		"to the next writes the difference only", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, build.Annotated(s, v1alpha1.AnnotationSelect, "none=here"))
		l, sum := f.ledger(ctx, "secrets"), counts{}
		l.rests(ctx, sum)
		for _, step := range []struct {
			selector         string
			in, out          []string
			creates, deletes int
		}{
			{v1alpha1.TreeLabel(f.acme) + "=1", []string{f.a, f.b}, []string{f.a1}, 2, 0},
			{"!" + v1alpha1.TreeLabel(f.a), []string{f.b}, []string{f.a, f.a1}, 0, 1},
			{v1alpha1.TreeLabel(f.acme) + ">1", []string{f.a1}, []string{f.a, f.b}, 1, 1},
			{"kubernetes.io/metadata.name in (" + f.a1 + "," + f.b + ")", []string{f.a1, f.b}, []string{f.a}, 1, 0},
			{"", f.tree(), nil, 1, 0},
		} {
			selecting(ctx, s, step.selector)
			f.copied(ctx, s, step.in...)
			f.absent(ctx, s, step.out...)
			for verb, n := range map[string]int{"create": step.creates, "delete": step.deletes} {
				if sum[verb] += n; sum[verb] == 0 {
					delete(sum, verb)
				}
			}
			l.come(ctx, sum)
		}
	})

	It("PROP-S6 a source that selects no namespace is not read; when it selects one, and "+
		"later another, two copies follow after one read", func(ctx SpecContext) {
		l := f.ledger(ctx, "secrets")
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		reads := func(ctx context.Context) int {
			return l.count(ctx, func(r audit.Request) bool { return r.Namespace == f.acme && r.Name == s.GetName() })["get"]
		}
		f.create(ctx, build.Annotated(s, v1alpha1.AnnotationSelect, "tier=web"))
		// A later source of the same tree is copied, so the operator has handled the first one, too.
		later := build.Source(build.Secret(f.acme, "later", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, later)
		f.copied(ctx, later, f.tree()...)
		f.staysAbsent(ctx, s, f.tree()...)
		Expect(reads(ctx)).To(BeZero())
		f.labelNamespace(ctx, f.a, "tier", "web")
		f.copied(ctx, s, f.a)
		f.labelNamespace(ctx, f.b, "tier", "web")
		f.copied(ctx, s, f.b)
		Expect(reads(ctx)).To(Equal(1))
	})

	It("PROP-S3 with policies off, an invalid select or mode sends one Event InvalidSource, and copies are neither changed nor deleted; "+
		"when these sources are deleted, so are the copies", func(ctx SpecContext) {
		f = grow(ctx, unguarded)
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		t := build.Source(build.Secret(f.acme, "t", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s, t)
		f.copied(ctx, s, f.tree()...)
		f.copied(ctx, t, f.tree()...)
		l := f.ledger(ctx, "secrets")
		selecting(ctx, s, "$foo")
		f.label(ctx, t, v1alpha1.LabelPropagate, "Update")
		for _, invalid := range []client.Object{s, t} {
			Eventually(ctx, f.events).WithArguments(invalid, v1alpha1.ReasonInvalidSource).Should(HaveLen(1))
		}
		change(ctx, f, s, func(s *corev1.Secret) { build.Annotated(s, "note", "edited") })
		l.rests(ctx, counts{})
		Expect(f.events(ctx, s, v1alpha1.ReasonInvalidSource)).To(HaveLen(1))
		Expect(f.events(ctx, t, v1alpha1.ReasonInvalidSource)).To(HaveLen(1))
		f.remove(ctx, s, t)
		f.absent(ctx, s, f.tree()...)
		f.absent(ctx, t, f.tree()...)
		l.come(ctx, counts{"delete": 6})
	})

	It("PROP-S7 an invalid select sets Propagated=False/InvalidSource, with annotation and parser's text, in the source's namespace only; "+
		"after it is corrected, or the source deleted, InSync returns", func(ctx SpecContext) {
		upper := build.Source(build.Secret(f.acme, "s7", "1"), v1alpha1.ModeUpdate)
		lower := build.Source(build.Secret(f.b, "s7-leaf", "1"), v1alpha1.ModeUpdate)
		for _, s := range []client.Object{upper, lower} {
			f.create(ctx, build.Annotated(s, v1alpha1.AnnotationSelect, "$foo"))
		}
		f.says(ctx, map[string]string{
			f.acme: fmt.Sprintf(`InvalidSource: Secret "s7" from %q: annotation %s is no label selector: `, f.acme, v1alpha1.AnnotationSelect),
			f.b:    fmt.Sprintf(`InvalidSource: Secret "s7-leaf" from %q: annotation %s is no label selector: `, f.b, v1alpha1.AnnotationSelect),
			f.a:    "InSync: ",
		})
		selecting(ctx, upper, "tier=web")
		f.remove(ctx, lower)
		f.says(ctx, map[string]string{f.acme: "InSync: ", f.b: "InSync: "})
	})

	It("PROP-S4 a source in a is copied to a1, as long as the source in acme does not select a1; then acme's replaces it in place, with "+
		"the same UID", func(ctx SpecContext) {
		upper := build.Source(build.Secret(f.acme, "s", "upper"), v1alpha1.ModeUpdate)
		lower := build.Source(build.Secret(f.a, "s", "lower"), v1alpha1.ModeUpdate)
		f.create(ctx, build.Annotated(upper, v1alpha1.AnnotationSelect, "tier=web"), lower)
		f.copied(ctx, lower, f.a1)
		uid := at(ctx, f, lower, f.a1).UID
		f.labelNamespace(ctx, f.a1, "tier", "web")
		f.copied(ctx, upper, f.a1)
		Expect(at(ctx, f, lower, f.a1).UID).To(Equal(uid))
	})
})

var _ = Describe("of two sources of one name", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	It("PROP-W1 if acme/s and a/s are sources, a1 has acme's copy, and a/s stays; conditions are Conflict in a and DescendantConflict in "+
		"acme, and a/s gets Event Shadowed; PROP-W2 when acme/s is created and deleted again, a1/s follows by one write each, with the same "+
		"UID, and both namespaces report InSync", func(ctx SpecContext) {
		lower := build.Source(build.Secret(f.a, "s", "lower"), v1alpha1.ModeUpdate)
		upper := build.Source(build.Secret(f.acme, "s", "upper"), v1alpha1.ModeUpdate)
		f.create(ctx, lower)
		f.copied(ctx, lower, f.a1)
		uid := at(ctx, f, lower, f.a1).UID
		l := f.ledger(ctx, "secrets")
		f.create(ctx, upper)
		f.copied(ctx, upper, f.a1, f.b)
		l.come(ctx, counts{"update": 1, "create": 1})
		Expect(at(ctx, f, lower, f.a).ResourceVersion).To(Equal(lower.ResourceVersion))
		f.says(ctx, map[string]string{
			f.a: fmt.Sprintf("Conflict: Secret %q from %q", "s", f.acme), f.acme: fmt.Sprintf("DescendantConflict: %s: Secret %q", f.a, "s"),
		})
		Eventually(ctx, f.events).WithArguments(lower, v1alpha1.ReasonShadowed).
			Should(ConsistOf(ContainSubstring(f.acme + "/s has the same name and is nearer to the root")))
		f.remove(ctx, upper)
		f.copied(ctx, lower, f.a1)
		f.absent(ctx, lower, f.b)
		l.come(ctx, counts{"update": 2, "create": 1, "delete": 1})
		Expect(at(ctx, f, lower, f.a1).UID).To(Equal(uid))
		f.says(ctx, map[string]string{f.a: "InSync", f.acme: "InSync"})
	})

	It("PROP-W3 when RoleBinding acme/s, with another roleRef than a/s, is created, the copy in a1 is deleted and created; also when it "+
		"is deleted; a1 has one binding", func(ctx SpecContext) {
		lower := build.Source(binding(f.a, "s", "view", "eve"), v1alpha1.ModeUpdate)
		upper := build.Source(binding(f.acme, "s", "edit", "eve"), v1alpha1.ModeUpdate)
		f.create(ctx, lower)
		f.copied(ctx, lower, f.a1)
		l := f.ledger(ctx, "rolebindings")
		f.create(ctx, upper)
		f.copied(ctx, upper, f.a1, f.b)
		f.remove(ctx, upper)
		f.copied(ctx, lower, f.a1)
		f.absent(ctx, lower, f.b)
		in := map[string]int{}
		for _, r := range l.read(ctx) {
			if r.Namespace == f.a1 && r.IsWrite() && r.Code < 300 {
				in[r.Verb]++
			}
		}
		Expect(in).To(Equal(map[string]int{"delete": 2, "create": 2}), l.String)
		bindings := &rbacv1.RoleBindingList{}
		Expect(f.Admin().List(ctx, bindings, client.InNamespace(f.a1))).To(Succeed())
		Expect(bindings.Items).To(HaveLen(1))
	})

	It("PROP-W4 in mode All, when acme/s is set to none, its copies are deleted, and a/s is copied to a1", func(ctx SpecContext) {
		upper, lower := build.Role(f.acme, "s", "get"), build.Role(f.a, "s", "list")
		f.create(ctx, upper)
		f.copied(ctx, upper, f.tree()...)
		f.label(ctx, upper, v1alpha1.LabelPropagate, v1alpha1.ModeNone)
		f.absent(ctx, upper, f.tree()...)
		f.create(ctx, lower)
		f.copied(ctx, lower, f.a1)
	})
})
