package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("An answer", func() {
	It("SEC-W33 a refused SubNamespace whose name a namespace waits for is answered without that namespace, but with it to a user who "+
		"may see it; SEC-W34 alice sets spec.parent to a namespace of a full tenant, or a missing one: 403, needs update in it, without "+
		"limits or existence; admin gets 422 with the limit", func(ctx SpecContext) {
		const payments, shop, till, solo, orphan = "w33-payments", "w33-shop", "w33-till", "w33-solo", "w33-orphan"
		shared.tenant(ctx, build.Tenant(payments).Users("w33-alice").Managers("mia"))
		shared.tenant(ctx, build.Tenant(shop).Users("w33-dave").Managers("mia").Limits(1, 3))
		shared.grow(ctx, shop+"/"+till)
		shared.Create(ctx, build.Namespace(solo), build.Child(orphan, "w33-gone"))
		shared.let(ctx, "w33-alice", "cluster-admin", solo)
		shared.Create(ctx, build.RoleBinding(payments, "viewer", "admin", build.RBACUser("w33-viewer")))
		shared.let(ctx, "w33-viewer", "view", "")
		unsaid := func(said answer, words ...string) {
			GinkgoHelper()
			for _, word := range words {
				Expect(said).NotTo(refuse(word))
			}
		}
		alice := "--as=w33-alice"

		awaited := build.SubNamespace(payments, "w33-gone")
		Eventually(shared.create).WithArguments(ctx, awaited, alice).
			Should(refuse(`namespaces that you may not see wait for a parent named "w33-gone"`))
		unsaid(shared.create(ctx, awaited, alice), orphan)
		Eventually(shared.create).WithArguments(ctx, awaited, "--as=w33-viewer").Should(refuse("namespace " + orphan + " waits for a parent"))

		below := build.Hierarchy(solo, build.Below(shop))
		Eventually(shared.wish).WithArguments(ctx, below, alice).
			Should(refuse("forbidden", `needs update on hierarchyconfigurations in namespace "w33-shop" (proposed parent)`))
		unsaid(shared.wish(ctx, below, alice), "in use", "allows", till)
		Expect(shared.wish(ctx, below)).To(refuse("tenant w33-shop allows 1 sub-namespaces (1 in use)"))
		missing := build.Hierarchy(solo, build.Below("w33-nosuch"))
		unsaid(shared.wish(ctx, missing, alice), "does not exist")
		Expect(shared.wish(ctx, missing, alice)).To(refuse("forbidden", `in namespace "w33-nosuch" (proposed parent)`))

		Eventually(shared.create).WithArguments(ctx, build.SubNamespace(payments, till), alice, "--dry-run=server").
			Should(warn("namespace w33-till exists outside of this tree"))
		Expect(shared.create(ctx, build.SubNamespace(payments, solo), alice, "--dry-run=server")).
			To(warn("namespace w33-solo exists outside of this tree"))
	})
})
