// Package suite has the beginning of every suite of Ginkgo.
package suite

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/facts"
)

// Patience is how long the cases wait for what should come: an upper bound where several of them share few cores, and no claim
// about speed.
const Patience = 3 * time.Minute

// limit is how long a case may take that has no SpecTimeout of its own: a request that hangs ends the case, and not the lane.
const limit = 10 * time.Minute

// Run runs the cases of a package.
func Run(t *testing.T, name string) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	log.SetLogger(ginkgo.GinkgoLogr) // else controller-runtime asks for one; the operator logs into a file of its own
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	gomega.SetDefaultEventuallyTimeout(Patience)
	// An API server takes milliseconds of a core for each question, and many cases ask at once.
	gomega.SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	gomega.SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
	ginkgo.AddTreeConstructionNodeArgsTransformer(limitCase)
	ginkgo.ReportBeforeEach(func(report ginkgo.SpecReport) { facts.InCase(report.FullText()) })
	begun := time.Now()
	ginkgo.RunSpecs(t, name)
	facts.Write(facts.Record{Kind: facts.Suite, Name: name, CPU: facts.OwnCPU().Seconds(), Wall: time.Since(begun).Seconds()})
}

// limitCase gives a time limit to each It that has none. A case without a context can't be ended, and is left alone.
func limitCase(kind types.NodeType, _ ginkgo.Offset, text string, args []any) (string, []any, []error) {
	if kind != types.NodeTypeIt || test.IsLong() {
		return text, args, nil
	}
	ends := false
	for _, arg := range args {
		switch arg.(type) {
		case ginkgo.SpecTimeout, ginkgo.NodeTimeout:
			return text, args, nil
		case func(ginkgo.SpecContext), func(context.Context):
			ends = true
		}
	}
	if ends {
		args = append(args, ginkgo.SpecTimeout(limit))
	}
	return text, args, nil
}
