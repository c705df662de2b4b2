// Package attack_test tries the attacks of docs/behaviour/security.md, section 3, against the policies of overlay standard, rendered for
// a configuration with further kinds. The requests have real tokens. No webhooks are called and the operator is stopped, because the wall
// must hold without them. On a further control plane without the policies' bindings, each refused request must succeed: none may fail for
// another reason. `make test-matrix` does the same on API servers that behave like older versions of Kubernetes.
//
// A number such as SEC-N1 in the name of a test means that the test covers that whole row. A test that covers only a part has the number
// in a comment.
package attack_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// soon is how long a case waits to see that nothing happens.
const soon = 20 * time.Second

// wall is the control plane that the rows are tried on.
var wall = &fixture{}

// running is a control plane with the operator at work, on the server's own version.
var running = &fixture{}

func rows() []row {
	return slices.Concat(namespaceRows, peaceRows, copyRows, railRows, budgetRows, limitRows, memoryRows, reviewRows, strangersRows,
		withdrawalRows, requestRows, timerRows,
		operatorRows())
}

func TestAttack(t *testing.T) { suite.Run(t, "attack") }

// shared are the control planes that all processes use.
func shared() []*fixture { return []*fixture{running, wall} }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	var starting errgroup.Group
	for _, f := range shared() {
		starting.Go(func() error { return f.start(ctx) })
	}
	err := starting.Wait()
	for _, f := range shared() {
		if f.World != nil {
			DeferCleanup(f.Stop)
		}
	}
	Expect(err).NotTo(HaveOccurred())
	running.settle(ctx, runningNamespaces...)
	running.given(ctx, admin, create("clusterrolebinding claras", bindingTo("cluster-admin", "clara")))
	wall.furnish(ctx)
	var described []string
	for _, f := range shared() {
		described = append(described, string(f.Bytes()))
	}
	data, err := json.Marshal(described)
	Expect(err).NotTo(HaveOccurred())
	return data
}, func(data []byte) {
	var described []string
	Expect(json.Unmarshal(data, &described)).To(Succeed())
	for i, f := range shared() {
		w, err := devcluster.Connect([]byte(described[i]))
		Expect(err).NotTo(HaveOccurred())
		f.World = w
	}
})

var _ = Describe("the wall", func() {
	It("is of the version that is asked for", func() {
		client, err := discovery.NewDiscoveryClientForConfig(wall.Config(controlplane.Admin))
		Expect(err).NotTo(HaveOccurred())
		says, err := client.ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		asked := devcluster.MinorVersion()
		Expect(says.EmulationMajor + "." + says.EmulationMinor).To(Equal(fmt.Sprintf("%d.%d", asked.Major(), asked.Minor())))
	})
	for _, r := range rows() {
		It(r.name, func(ctx SpecContext) { wall.holds(ctx, r) })
	}
})

var _ = Describe("where the wall is down", func() {
	It("each of the requests that it refuses would go through", func(ctx SpecContext) {
		f := &fixture{}
		Expect(f.start(ctx)).To(Succeed())
		DeferCleanup(f.Stop)
		f.furnish(ctx)
		f.open(ctx)
		for _, r := range rows() {
			f.rehearse(ctx, r)
		}
	})
})
