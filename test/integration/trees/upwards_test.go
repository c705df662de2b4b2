package trees_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("HierarchyConfigurations are applied from the leaves upwards", func() {
	It("HIER-O10 while a user writes HierarchyConfigurations from the leaves upwards, the operator does not create HC(p) before "+
		"the user does", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("o10-org"), build.Namespace("o10-parent"), build.Namespace("o10-leaf"))
		shared.wish(ctx, "o10-leaf", build.Below("o10-parent"))
		Eventually(shared.hier("o10-leaf")).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentNotManaged))
		// This loop ends when the operator has reported what is wrong with o10-other. In that time, it must not report on o10-parent.
		shared.Create(ctx, build.Child("o10-other", "o10-nowhere"))
		count := 0
		Eventually(func(g Gomega) {
			count++
			name := fmt.Sprintf("o10-more-%d", count)
			shared.Create(ctx, build.Namespace(name))
			shared.wish(ctx, name, build.Below("o10-org"))
			g.Expect(shared.hier("o10-other")(ctx)).To(unready(halted, v1alpha1.ReasonParentMissing))
		}).WithContext(ctx).Should(Succeed())
		Expect(shared.Admin().Create(ctx, build.Hierarchy("o10-parent", build.Below("o10-org")))).To(Succeed(), "the name is free")
		Eventually(shared.hier("o10-leaf")).WithContext(ctx).Should(And(applied(), shown("o10-parent", 2)))
	})
})
