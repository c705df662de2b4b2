// Package takeoff_test takes the operator off real control planes by the very scripts behind `make deploy` and
// `make undeploy`, and looks at what is left: cases FLT-U01 to FLT-U05 of docs/behaviour/faults.md. Each container has a
// control plane of its own.
package takeoff_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

// manager is the binary that is tested, as operator and as `manager release`.
var manager string

func TestTakeoff(t *testing.T) { suite.Run(t, "Takeoff") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	path, err := devcluster.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	return []byte(path)
}, func(path []byte) { manager = string(path) })
