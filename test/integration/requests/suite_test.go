// Package requests_test runs the cases of sudo on request against a real control plane, whose controller manager ends the rights.
package requests_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

func TestRequests(t *testing.T) { suite.Run(t, "requests") }

// world is what all cases share that stop no process.
var world words.Cluster

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	w := startWorld(ctx)
	return w.Bytes()
}, func(data []byte) {
	w, err := devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
	world.World = w
})

// startWorld starts a World with component requests, and stops it at the end of the node.
func startWorld(ctx context.Context) *devcluster.World {
	GinkgoHelper()
	w, err := devcluster.Start(ctx, devcluster.Options{
		Components:   []string{"config/components/requests"},
		ControlPlane: controlplane.Options{Users: map[string][]string{"lea": {"pay-leads"}, "zed": nil}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	return w
}

var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && world.World != nil {
		AddReportEntry("log of the shared operator", ReportEntryVisibilityNever, world.Operator.Log())
	}
})

// names is how many names unique has returned in this process.
var names int

// unique returns a name that no other case has.
func unique(name string) string {
	names++
	return fmt.Sprintf("%s-%d-%d", name, GinkgoParallelProcess(), names)
}
