// Package suite is how every suite of Ginkgo begins.
package suite

import (
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Run runs the cases of a package. soon is how long they wait for what should come: an upper bound where several cases share few
// cores, and no claim about speed.
func Run(t *testing.T, name string, soon time.Duration) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	log.SetLogger(ginkgo.GinkgoLogr) // else controller-runtime asks for one; the operator logs into a file of its own
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	gomega.SetDefaultEventuallyTimeout(soon)
	gomega.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	gomega.SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	ginkgo.RunSpecs(t, name)
}
