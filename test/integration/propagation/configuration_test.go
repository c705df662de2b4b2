package propagation_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("the configuration", Ordered, func() {
	var f *family
	all := []string{"{kind: Secret}", "{kind: ConfigMap, mode: All}"}
	BeforeAll(func(ctx SpecContext) { f = grow(ctx, start(ctx, setup{Kinds: all})) })
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, f.World) })

	It("PROP-N2 with ConfigMap in mode All, kube-root-ca.crt causes no conflict and no "+
		"Event when a plain namespace joins a tree", func(ctx SpecContext) {
		m := build.ConfigMap(f.acme, "m", "1")
		f.create(ctx, m)
		f.move(ctx, f.solo, f.acme)
		f.copied(ctx, m, append(f.tree(), f.solo)...)
		root := build.ConfigMap(f.acme, "kube-root-ca.crt", "")
		Consistently(ctx, f.events).WithArguments(root, v1alpha1.Reason("")).Should(BeEmpty())
		metrics, err := f.Operator.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics.Value("warren_propagation_conflicts", map[string]string{"kind": "ConfigMap"})).To(BeZero())
	})

	It("PROP-R7 when propagation.excludedLabels gets one more pattern, each copy with such a label gets one write, and no other copy gets "+
		"any", func(ctx SpecContext) {
		with := build.Source(build.Secret(f.acme, "with", "1", "team/colour", "red"), v1alpha1.ModeUpdate)
		without := build.Source(build.Secret(f.acme, "without", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, with, without)
		f.copied(ctx, with, f.tree()...)
		f.copied(ctx, without, f.tree()...)
		l, m := f.ledger(ctx, "secrets"), f.ledger(ctx, "configmaps")
		Expect(f.Operator.Configure(ctx, setup{Kinds: all, Propagation: "  excludedLabels: [\"team/*\"]\n"}.config())).To(Succeed())
		Eventually(ctx, l.writes).Should(Equal(counts{"update": 3}), l.String)
		l.rests(ctx, counts{"update": 3})
		m.rests(ctx, counts{})
	})

	It("PROP-X11 when Secret changes from OptIn to All, Secrets without label are copied, where select allows, and b reports Conflict; "+
		"back in OptIn, only these copies are deleted", func(ctx SpecContext) {
		labelled := build.Source(build.Secret(f.acme, "labelled", "1"), v1alpha1.ModeUpdate)
		once := build.Source(build.Secret(f.acme, "once", "1"), v1alpha1.ModeCreate)
		bare, held := build.Secret(f.acme, "bare", "1"), build.Secret(f.acme, "held", "1", v1alpha1.LabelPropagate, v1alpha1.ModeNone)
		some, own := build.Annotated(build.Secret(f.acme, "some", "1"), v1alpha1.AnnotationSelect, v1alpha1.TreeLabel(f.a)),
			build.Secret(f.b, "bare", "own")
		f.create(ctx, own, labelled, once, bare, held, some)
		f.copied(ctx, labelled, f.tree()...)
		f.copied(ctx, once, f.tree()...)
		l := f.ledger(ctx, "secrets")
		whole := setup{Kinds: []string{"{kind: Secret, mode: All}", "{kind: ConfigMap, mode: All}"}}.config()
		Expect(f.Operator.Configure(ctx, whole)).To(Succeed())
		f.copied(ctx, bare, f.a, f.a1)
		f.copied(ctx, some, f.a, f.a1)
		f.says(ctx, map[string]string{
			f.b: fmt.Sprintf("Conflict: Secret %q from %q: an object of that name exists: rename or delete it", "bare", f.acme),
			f.a: "InSync", f.acme: "DescendantConflict: " + f.b,
		})
		l.come(ctx, counts{"create": 4})
		f.staysAbsent(ctx, held, f.tree()...)
		f.staysAbsent(ctx, some, f.b)

		Expect(f.Operator.Configure(ctx, setup{Kinds: all}.config())).To(Succeed())
		f.absent(ctx, bare, f.a, f.a1)
		f.absent(ctx, some, f.a, f.a1)
		f.says(ctx, map[string]string{f.b: "InSync", f.acme: "InSync"})
		l.come(ctx, counts{"create": 4, "delete": 4})
		f.staysCopied(ctx, labelled, f.tree()...)
		f.staysCopied(ctx, once, f.tree()...)
	})

	It("PROP-X4 in mode Remove, copies in mode update are deleted, and those in create stay; after the kind is taken from the list, "+
		"nothing is written or deleted", func(ctx SpecContext) {
		m := build.Source(build.ConfigMap(f.acme, "m", "1"), v1alpha1.ModeUpdate)
		kept := build.Source(build.ConfigMap(f.acme, "kept", "1"), v1alpha1.ModeCreate)
		f.create(ctx, m, kept)
		f.copied(ctx, m, f.tree()...)
		f.copied(ctx, kept, f.tree()...)
		l := f.ledger(ctx, "configmaps")
		Expect(f.Operator.Configure(ctx, setup{Kinds: []string{"{kind: Secret}", "{kind: ConfigMap, mode: Remove}"}}.config())).To(Succeed())
		Eventually(ctx, f.standing).WithArguments(m, f.a, f.a1, f.b).Should(BeEmpty())
		l.come(ctx, counts{"delete": 3})
		Expect(f.Operator.Configure(ctx, setup{Kinds: []string{"{kind: Secret}"}}.config())).To(Succeed())
		Eventually(ctx, func(ctx SpecContext) bool {
			metrics, err := f.Operator.Metrics(ctx)
			return err == nil && !metrics.Has("warren_config_kind", map[string]string{"kind": "ConfigMap"})
		}).WithArguments(ctx).Should(BeTrue(), "the kind is taken out of the list")
		f.remove(ctx, m)
		l.rests(ctx, counts{"delete": 3})
		f.staysCopied(ctx, kept, f.tree()...)
	})
})
