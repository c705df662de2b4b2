// Package trees_test runs the cases of docs/behaviour/subnamespaces.md and hierarchy.md that concern the reconcilers, the CRD, the
// configuration file and the plugin, against a real control plane. Cases share one World and use tenants of their own names, which begin
// with the number of the case. A case that stops the operator or changes its configuration runs in a World of its own.
package trees_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

// fixture is the configuration at the head of the cases.
const fixture = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
inheritance:
  labels: [team, "*.glob/*", "pod-security.kubernetes.io/*"]
  annotations: [memo]
subNamespaces:
  labels: [team, app]
  annotations: [memo]
  namingPolicies:
  - {root: "^app-(?P<team>.*)", match: "^app-${team}-.*"}
  - {root: "^two-", match: "-x$"}
`

// shared is the World of all cases that don't disturb each other.
var shared cluster

// built is what the first process builds for all.
var built struct{ Manager, Plugins string }

func TestTrees(t *testing.T) { suite.Run(t, "trees") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	var err error
	built.Manager, err = devcluster.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	built.Plugins, err = devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	w := startWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: fixture}})
	data, err := json.Marshal(map[string]any{"world": json.RawMessage(w.Bytes()), "built": built})
	Expect(err).NotTo(HaveOccurred())
	return data
}, func(data []byte) {
	var sent struct {
		World json.RawMessage
		Built struct{ Manager, Plugins string }
	}
	Expect(json.Unmarshal(data, &sent)).To(Succeed())
	built = sent.Built
	w, err := devcluster.Connect(sent.World)
	Expect(err).NotTo(HaveOccurred())
	shared = cluster{words.Cluster{World: w}}
})

var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && shared.World != nil {
		AddReportEntry("log of the shared operator", ReportEntryVisibilityNever, shared.Operator.Log())
	}
})

// startWorld starts a World that ends with the suite or container that started it.
func startWorld(ctx SpecContext, options devcluster.Options) cluster {
	GinkgoHelper()
	options.Operator.Manager, options.PlacesFreely = built.Manager, true
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	w.Plugins = built.Plugins
	return cluster{words.Cluster{World: w}}
}
