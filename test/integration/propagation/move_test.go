package propagation_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("a namespace that moves", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	sources := func(ctx context.Context, namespace string, names ...string) []*corev1.Secret {
		var made []*corev1.Secret
		for _, name := range names {
			s := build.Source(build.Secret(namespace, name, namespace), v1alpha1.ModeUpdate)
			f.create(ctx, s)
			made = append(made, s)
		}
		return made
	}
	copied := func(ctx context.Context, sources []*corev1.Secret, namespaces ...string) {
		GinkgoHelper()
		for _, s := range sources {
			f.copied(ctx, s, namespaces...)
		}
	}

	It("PROP-V1 when a and a1 move to zeta, all deletes there precede creates; a copy whose name both roots have gets a new UID; copies "+
		"from templates get no write", func(ctx SpecContext) {
		for _, root := range []string{f.acme, f.zeta} {
			f.labelNamespace(ctx, root, v1alpha1.LabelTemplate, f.tmpl)
		}
		above, old := sources(ctx, f.tmpl, "above"), sources(ctx, f.acme, "one", "two", "shared")
		now := sources(ctx, f.zeta, "three", "four", "shared")
		copied(ctx, above, f.a, f.a1)
		copied(ctx, old, f.a, f.a1)
		uid := at(ctx, f, old[2], f.a).UID
		l := f.ledger(ctx, "secrets")
		f.move(ctx, f.a, f.zeta)
		copied(ctx, now, f.a, f.a1)
		f.absent(ctx, old[0], f.a, f.a1)
		f.absent(ctx, old[1], f.a, f.a1)
		l.come(ctx, counts{"delete": 6, "create": 6})
		l.removesFirst(ctx, f.a, f.a1)
		Expect(at(ctx, f, old[2], f.a).UID).NotTo(Equal(uid))
		ofTemplate := func(r audit.Request) bool { return r.Name == "above" && r.IsWrite() }
		Expect(l.count(ctx, ofTemplate)).To(BeEmpty())
	})

	It("PROP-V2 if a policy refuses one DELETE after a move, a reports WaitingForRemoval with that copy and gets no POST, but a1 gets "+
		"zeta's copies; without the policy, a does too", func(ctx SpecContext) {
		old, now := sources(ctx, f.acme, "one", "two"), sources(ctx, f.zeta, "three")
		copied(ctx, old, f.a, f.a1)
		policy, bound := build.Policy(f.a, admissionv1.Delete, corev1.SchemeGroupVersion.WithResource("secrets"),
			"oldObject.metadata.name != 'one'", "it stays")
		f.create(ctx, policy, bound)
		DeferCleanup(func(ctx SpecContext) { _ = client.IgnoreNotFound(f.Admin().Delete(ctx, bound)) })
		Eventually(ctx, func(ctx context.Context) error {
			return f.As(controlplane.Operator).Delete(ctx, build.Secret(f.a, "one", ""), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("it stays")))
		l := f.ledger(ctx, "secrets")
		f.move(ctx, f.a, f.zeta)
		copied(ctx, now, f.a1)
		Eventually(ctx, f.report).WithArguments(f.a).Should(And(HavePrefix("WaitingForRemoval: "), ContainSubstring(`Secret "one"`)))
		Expect(l.count(ctx, func(r audit.Request) bool { return r.Namespace == f.a && r.Verb == "create" })).To(BeEmpty(), l.String)
		refused := l.count(ctx, func(r audit.Request) bool { return r.Namespace == f.a && r.Verb == "delete" && r.Code == 403 })
		Expect(refused["delete"]).To(BeNumerically("<", 100), "with a back-off")
		f.remove(ctx, bound)
		copied(ctx, now, f.a)
		f.absent(ctx, old[0], f.a, f.a1)
		f.says(ctx, map[string]string{f.a: "InSync"})
	})

	It("PROP-V3 within 30 s after 50 moves of a between acme and zeta, a and a1 have exactly the copies of acme's sources; acme's tree "+
		"has none of zeta's", func(ctx SpecContext) {
		old, now := sources(ctx, f.acme, "one", "shared"), sources(ctx, f.zeta, "two", "shared")
		copied(ctx, old, f.a, f.a1)
		for range 25 {
			f.move(ctx, f.a, f.zeta)
			f.move(ctx, f.a, f.acme)
		}
		ends := func(g Gomega, ctx context.Context) {
			for _, namespace := range []string{f.a, f.a1} {
				list := &corev1.SecretList{}
				g.Expect(f.Admin().List(ctx, list, client.InNamespace(namespace))).To(Succeed())
				g.Expect(list.Items).To(HaveLen(2))
				for _, s := range list.Items {
					g.Expect(s.Labels).To(HaveKeyWithValue(v1alpha1.LabelInheritedFrom, f.acme))
				}
			}
		}
		Eventually(ctx, ends).Should(Succeed(), explain(world))
		Consistently(ctx, ends).WithTimeout(test.Quiet(soon)).Should(Succeed())
		copied(ctx, old, f.a, f.a1)
		list := &corev1.SecretList{}
		Expect(f.Admin().List(ctx, list, client.MatchingLabels{v1alpha1.LabelInheritedFrom: f.zeta})).To(Succeed())
		for _, s := range list.Items {
			Expect(s.Namespace).To(Equal(f.z), "nothing of zeta is left in acme's tree")
		}
		copied(ctx, now, f.z)
	})

	It("PROP-V4 while a has a missing parent, a and a1 keep the copy of a source that is deleted, with its UID; once a is back, the copy "+
		"is deleted there", func(ctx SpecContext) {
		s := sources(ctx, f.acme, "s")[0]
		f.copied(ctx, s, f.tree()...)
		uid, uid1 := at(ctx, f, s, f.a).UID, at(ctx, f, s, f.a1).UID
		f.move(ctx, f.a, f.prefix+"nowhere")
		f.isHalted(ctx, f.a, f.a1)
		l := f.ledger(ctx, "secrets")
		f.remove(ctx, s)
		f.absent(ctx, s, f.b)
		l.come(ctx, counts{"delete": 1})
		Expect(at(ctx, f, s, f.a).UID).To(Equal(uid))
		Expect(at(ctx, f, s, f.a1).UID).To(Equal(uid1))
		f.move(ctx, f.a, f.acme)
		f.absent(ctx, s, f.tree()...)
	})

	for policies, in := range map[string]func() *devcluster.World{
		"policies on":  func() *devcluster.World { return world },
		"policies off": func() *devcluster.World { return unguarded },
	} {
		It("PROP-V5 a namespace that leaves its tree loses copies in mode update, also RoleBindings and Roles; copies in mode create and its "+
			"own objects stay, with policies on and off: "+policies, func(ctx SpecContext) {
			f = grow(ctx, in())
			s := sources(ctx, f.acme, "s")[0]
			rb := build.Source(binding(f.acme, "s", "view", "eve"), v1alpha1.ModeUpdate)
			role, own := build.Role(f.acme, "s", "get"), build.Secret(f.a, "own", "own")
			kept := build.Source(build.Secret(f.acme, "kept", "1"), v1alpha1.ModeCreate)
			f.create(ctx, rb, role, own, kept)
			for _, source := range []client.Object{s, rb, role, kept} {
				f.copied(ctx, source, f.tree()...)
			}
			f.move(ctx, f.a, "")
			for _, source := range []client.Object{s, rb, role} {
				f.absent(ctx, source, f.a)
				f.staysCopied(ctx, source, f.b)
			}
			f.staysCopied(ctx, kept, f.a, f.b)
			Expect(at(ctx, f, own, f.a).ResourceVersion).To(Equal(own.ResourceVersion))
		})
	}
})
