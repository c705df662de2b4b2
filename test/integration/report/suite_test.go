// Package report_test compares what `kubectl warren access`, `who-can` and `why` say with what the API server does, for the tenants
// of the specification: with a token for each person, and real impersonation.
package report_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

var world words.Cluster

func TestReport(t *testing.T) { suite.Run(t, "Report") }

// One process makes the fixture; the cases only look at it.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	w, err := devcluster.Start(ctx, devcluster.Options{ControlPlane: controlplane.Options{Users: map[string][]string{auditor: nil}}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	furnish(ctx, words.Cluster{World: w})
	return w.Bytes()
}, func(data []byte) {
	var err error
	world.World, err = devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
})
