// Package webhooks_test shows how the API server reaches the operator's webhooks on a real control plane: which requests it
// sends, what becomes of them while nobody answers, and the certificate that the operator makes, rotates and lets the
// API server trust.
//
// A number such as SEC-W1 in the name of a test says that all of that row of docs/behaviour/security.md was seen. A test
// that shows only a part of its row has the number in a comment.
package webhooks_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

func TestWebhooks(t *testing.T) { suite.Run(t, "Webhooks") }

// start starts a World with webhooks, which ends with the case.
func start(ctx SpecContext, options devcluster.Options) *devcluster.World {
	GinkgoHelper()
	options.Webhooks = true
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w
}
