package informers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/memcached"
)

var _ = Describe("the example", func() {
	It("plays the demonstration of informers that follow RBAC", func(ctx SpecContext) {
		Expect(memcached.Play(ctx, GinkgoWriter)).To(Succeed())
	})
})
