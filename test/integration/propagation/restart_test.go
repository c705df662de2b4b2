package propagation_test

import (
	"context"
	"time"

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

	It("PROP-R2 catches up with the sources and the trees", func(ctx SpecContext) {
		deleted, unlabelled, equal := source(ctx, f.acme, "deleted"), source(ctx, f.acme, "unlabelled"), source(ctx, f.acme, "equal")
		moved := source(ctx, f.zeta, "moved")
		f.create(ctx, build.Child(f.prefix+"m", f.zeta))
		for _, s := range []*corev1.Secret{deleted, unlabelled, equal} {
			f.copied(ctx, s, f.tree()...)
		}
		f.copied(ctx, moved, f.prefix+"m")
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

	// The page's PROP-D8 also asks for what only the scrub finds.
	It("puts right what shows in the metadata", func(ctx SpecContext) {
		s := source(ctx, f.acme, "s")
		f.copied(ctx, s, f.tree()...)
		untouched := at(ctx, f, s, f.b)
		l := away(ctx, func() {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"eA=="}}`))
			Expect(f.Admin().Patch(ctx, build.Secret(f.a, "s", ""), patch, client.FieldOwner("kubectl-patch"))).To(Succeed())
			f.remove(ctx, build.Secret(f.a1, "s", ""))
		})
		Eventually(ctx, f.differs).WithArguments(s, f.a).WithTimeout(20 * time.Second).Should(Succeed())
		f.copied(ctx, s, f.a1)
		l.come(ctx, counts{"update": 1, "create": 1})
		Expect(at(ctx, f, s, f.b).ResourceVersion).To(Equal(untouched.ResourceVersion))
	})
})
