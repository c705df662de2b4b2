package trees_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("labels and annotations flow down", func() {
	It("SUB-I1 of the root's keys, a child has those that match the configuration's patterns: foo.glob/a and memo, not x.y/glob.z, other "+
		"and note", func(ctx SpecContext) {
		shared.Create(ctx, build.Annotated(build.Root("i1-payments", "foo.glob/a", "1", "x.y/glob.z", "2", "other", "3"), "memo", "m",
			"note", "n"))
		shared.grow(ctx, "i1-payments/i1-web")
		Expect(shared.now(ctx, "i1-web")).To(And(carry("foo.glob/a", "1"), noted("memo", "m"),
			lack("x.y/glob.z"), lack("other"), unnoted("note")))
	})

	It("SUB-I2 a child that sets a value of its own for an "+
		"inherited label, or joins with one, has the root's value after one write", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i2-payments", "team", "neco"))
		shared.grow(ctx, "i2-payments/i2-web")
		since := shared.Mark(ctx)
		shared.label(ctx, "i2-web", "team=own")
		shared.Create(ctx, build.Child("i2-joins", "i2-payments", "team", "old"))
		for _, name := range []string{"i2-web", "i2-joins"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("team", "neco"))
		}
		shared.quiet(ctx, 5*time.Second, "i2-web", "i2-joins")
		for _, name := range []string{"i2-web", "i2-joins"} {
			Expect(shared.namespaceWrites(since, name)(ctx)).To(HaveLen(1), name)
		}
	})

	It("SUB-I3 when the root loses a label, its children lose it too, "+
		"but not a child that had it with that value before it joined", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i3-payments", "team", "neco"), build.Child("i3-own", "i3-payments", "team", "neco"))
		shared.grow(ctx, "i3-payments/i3-web", "i3-own/i3-below")
		Eventually(shared.ns("i3-own")).WithContext(ctx).Should(standing("i3-payments", "1"))
		shared.label(ctx, "i3-payments", "team-")
		Eventually(shared.ns("i3-web")).WithContext(ctx).Should(lack("team"))
		shared.quiet(ctx, 5*time.Second, "i3-own", "i3-below")
		Expect(shared.now(ctx, "i3-own")).To(carry("team", "neco"))
	})

	It("SUB-I4 a root that references a template has the template's value of a label, and so has its whole tree; without the reference, "+
		"none of them has it", func(ctx SpecContext) {
		shared.Create(ctx, build.Template("i4-base", "team", "base"),
			build.Root("i4-payments", "team", "neco", v1alpha1.LabelTemplate, "i4-base"))
		shared.grow(ctx, "i4-payments/i4-web", "i4-web/i4-deep")
		tree := []string{"i4-payments", "i4-web", "i4-deep"}
		for _, name := range tree {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("team", "base"))
		}
		shared.label(ctx, "i4-payments", v1alpha1.LabelTemplate+"-")
		for _, name := range tree {
			Eventually(shared.ns(name)).WithContext(ctx).Should(lack("team"))
		}
	})

	It("SUB-I6 a label that is set on the root of a chain "+
		"of 16 namespaces reaches the 15 others by exactly 15 writes of Namespaces", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i6-0"))
		var below []string
		for i := range 15 {
			below = append(below, fmt.Sprintf("i6-%d", i+1))
			shared.Create(ctx, build.Child(fmt.Sprintf("i6-%d", i+1), fmt.Sprintf("i6-%d", i)))
		}
		for i, name := range below {
			Eventually(shared.ns(name)).WithContext(ctx).Should(standing("i6-0", fmt.Sprint(i+1)))
		}
		shared.quiet(ctx, time.Second, below...)
		since := shared.Mark(ctx)
		shared.label(ctx, "i6-0", "team=neco")
		for _, name := range below {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("team", "neco"))
		}
		shared.quiet(ctx, 5*time.Second, append(below, "i6-0")...)
		Expect(shared.namespaceWrites(since, append(below, "i6-0")...)(ctx)).To(HaveLen(15))
	})

	It("SUB-I8 a namespace keeps the annotation of another controller "+
		"when a new value of an inherited label reaches it", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i8-payments", "team", "neco"))
		shared.grow(ctx, "i8-payments/i8-web")
		shared.annotate(ctx, "i8-web", "field.example.com/id=7")
		shared.label(ctx, "i8-payments", "team=tama")
		Eventually(shared.ns("i8-web")).WithContext(ctx).Should(And(carry("team", "tama"), noted("field.example.com/id", "7")))
	})
})
