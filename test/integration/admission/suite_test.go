// Package admission_test sends requests with kubectl to a real API server that asks the operator's webhooks, and reads
// what people read: the refusal or the Warning. Cases share one World and use names of their own, which begin with the
// number of the case.
//
// A number such as SUB-T4 in the name of a test says that all of that row of docs/behaviour was seen. A test that shows
// only a part of its row has the number in a comment.
package admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

// configuration is the one at the head of the cases in subnamespaces.md, with the naming policies and billing that other cases need.
const configuration = `apiVersion: config.tenancy.warren.dev/v1alpha1
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
protectedNamespaces: [locked-*]
billing:
  defaults:
  - {group: g1, costCenter: "1"}
  - {group: g2, costCenter: "2"}
  - {costCenter: "9"}
`

// quiet is how long a case watches that nothing happens.
var quiet = test.Quiet(10 * time.Second)

// shared is the World of all cases that don't disturb each other.
var shared cluster

func TestAdmission(t *testing.T) { suite.Run(t, "Admission") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	w, err := devcluster.Start(ctx, devcluster.Options{Webhooks: true, PlacesFreely: true,
		Operator: devcluster.OperatorOptions{Config: configuration}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	cluster{words.Cluster{World: w}}.Create(ctx, clusterRoles()...)
	return w.Bytes()
}, func(data []byte) {
	w, err := devcluster.Connect(data)
	Expect(err).NotTo(HaveOccurred())
	shared = cluster{words.Cluster{World: w}}
})

var _ = ReportAfterEach(func(report SpecReport) {
	if report.Failed() && shared.World != nil {
		AddReportEntry("log of the shared operator", ReportEntryVisibilityNever, shared.Operator.Log())
	}
})
