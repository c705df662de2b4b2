package propagation_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("an operator that was away", Ordered, func() {
	var f *family
	BeforeAll(func(ctx SpecContext) { f = grow(ctx, start(ctx, setup{WithoutPolicies: true})) })
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, f.World) })

	source := func(ctx context.Context, namespace, name string) *corev1.Secret {
		s := build.Source(build.Secret(namespace, name, "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		return s
	}
	away := func(ctx context.Context, meanwhile func()) *ledger {
		GinkgoHelper()
		l := f.ledger(ctx, "secrets")
		_, err := f.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		meanwhile()
		Expect(f.Operator.Start(ctx)).To(Succeed())
		return l
	}

	It("PROP-R2 after a start, copies of sources deleted or unlabelled meanwhile are deleted; a source made anew with equal content "+
		"causes no write; a moved namespace has deletes before creates", func(ctx SpecContext) {
		deleted, unlabelled, equal := source(ctx, f.acme, "deleted"), source(ctx, f.acme, "unlabelled"), source(ctx, f.acme, "equal")
		moved := source(ctx, f.zeta, "moved")
		f.create(ctx, build.Child(f.prefix+"m", f.zeta))
		for _, s := range []*corev1.Secret{deleted, unlabelled, equal} {
			f.copied(ctx, s, f.tree()...)
		}
		f.copied(ctx, moved, f.z, f.prefix+"m")
		uid := at(ctx, f, equal, f.a).UID
		l := away(ctx, func() {
			f.remove(ctx, deleted, equal)
			f.label(ctx, unlabelled, v1alpha1.LabelPropagate, "")
			equal = source(ctx, f.acme, "equal")
			f.move(ctx, f.prefix+"m", f.acme)
		})
		f.absent(ctx, deleted, f.tree()...)
		f.absent(ctx, unlabelled, f.tree()...)
		f.copied(ctx, equal, append(f.tree(), f.prefix+"m")...)
		l.come(ctx, counts{"delete": 7, "create": 1})
		l.removesFirst(ctx, f.prefix+"m")
		Expect(at(ctx, f, equal, f.a).UID).To(Equal(uid))
	})

	It("PROP-D8 with policies off, copies that any field manager changed, or that were deleted, while the operator was down are correct "+
		"within 20 s after readiness; others get no write", func(ctx SpecContext) {
		names := []string{f.prefix + "value", f.prefix + "key", f.prefix + "ours", f.prefix + "gone"}
		for _, name := range names {
			f.create(ctx, build.Child(name, f.acme))
		}
		s := source(ctx, f.acme, "s")
		f.copied(ctx, s, append(f.tree(), names...)...)
		untouched := map[string]string{}
		for _, namespace := range f.tree() {
			untouched[namespace] = at(ctx, f, s, namespace).ResourceVersion
		}
		l := away(ctx, func() {
			patch := func(namespace, text, manager string) {
				GinkgoHelper()
				Expect(f.Admin().Patch(ctx, build.Secret(namespace, "s", ""), client.RawPatch(types.MergePatchType, []byte(text)),
					client.FieldOwner(manager))).To(Succeed())
			}
			patch(names[0], `{"data":{"key":"eA=="}}`, "kubectl-patch")
			patch(names[1], `{"data":{"key":null}}`, "kubectl-patch")
			patch(names[2], `{"data":{"key":"eA=="}}`, "warren")
			f.remove(ctx, build.Secret(names[3], "s", ""))
		})
		for _, namespace := range names {
			Eventually(ctx, f.differs).WithArguments(s, namespace).Should(Succeed(), explain(f.World))
		}
		l.come(ctx, counts{"update": 3, "create": 1})
		for namespace, version := range untouched {
			Expect(at(ctx, f, s, namespace).ResourceVersion).To(Equal(version))
		}
	})
})
