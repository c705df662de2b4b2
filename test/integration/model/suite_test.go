// Package model_test compares the API server's authorizer with a small model of docs/behaviour/access.md: tens of thousands of random
// questions about tenants that share their people, before and after a storm of edits.
//
// The questions are drawn from a seed, which is printed. MODEL_SEED=7 draws others.
package model_test

import (
	"os"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

var world *devcluster.World

func TestModel(t *testing.T) { suite.Run(t, "Model") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	w, err := devcluster.Start(ctx, devcluster.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w.Bytes()
}, func(data []byte) {
	var err error
	world, err = devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})

// seed is the seed of all that is random.
func seed() uint64 {
	GinkgoHelper()
	text := os.Getenv("MODEL_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	Expect(err).NotTo(HaveOccurred(), "MODEL_SEED=%q is no number", text)
	return n
}
