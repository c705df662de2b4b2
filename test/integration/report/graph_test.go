package report_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("a drawing of the forest", func() {
	It("WEB-G4 graph payments --people of alice has: you may not read LNamespace payments; WEB-G5 graph of alice is an error: her "+
		"rights name no tenant: name a root; graph payments is her tree", func(ctx SpecContext) {
		out, problems, status := world.Kubectl(ctx, "alice", "warren", "graph", "-o", "mermaid")
		Expect(out).To(BeEmpty())
		Expect(problems).To(HavePrefix("error: " + nothingFound + ": name a root, or "))
		Expect(status).To(Equal(1))
		out, problems, status = world.Kubectl(ctx, "alice", "warren", "graph", "payments", "-o", "mermaid", "--people")
		Expect(status).To(BeZero(), problems)
		Expect(out).To(And(ContainSubstring(`"payments<br>`), ContainSubstring(`"pay-web<br>`), ContainSubstring("n0-->n"),
			ContainSubstring("you may not read LNamespace payments"), ContainSubstring("as alice")))
	})

	It("WEB-G4 without --people, graph names no person; with it, graph has the three lists", func(ctx SpecContext) {
		without, problems, status := world.Kubectl(ctx, controlplane.Admin, "warren", "graph", "payments", "-o", "svg")
		Expect(status).To(BeZero(), problems)
		with, problems, status := world.Kubectl(ctx, controlplane.Admin, "warren", "graph", "payments", "-o", "svg", "--people")
		Expect(status).To(BeZero(), problems)
		for _, person := range []string{"User alice", "User mia", "User bob"} {
			Expect(without).NotTo(ContainSubstring(person))
			Expect(with).To(ContainSubstring(person))
		}
	})
})
