// Package distribution_test runs the cases of the specification's page distribution against a real control plane.
package distribution_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"golang.org/x/sync/errgroup"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

// soon is how long a case watches that nothing happens: by the specification, a change reaches all copies within that time.
const soon = 3 * time.Second

func TestDistribution(t *testing.T) { suite.Run(t, "distribution") }

// world is what all cases share that stop no process: without webhooks, with component distribution-overwrite, which contains component
// distribution.
var world *devcluster.World

const component, overwriteComponent = "config/components/distribution", "config/components/distribution-overwrite"

const configuration = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
propagation: {retry: {min: 200ms, max: 2s}}
distribution: {allowOverwrite: true}
`

// judged is another World, with webhooks and component distribution alone: Overwrite is not allowed there.
var judged *devcluster.World

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	all := []devcluster.Options{
		{Components: []string{overwriteComponent}, Operator: devcluster.OperatorOptions{Config: configuration}},
		{Components: []string{component}, Webhooks: true},
	}
	worlds := make([]*devcluster.World, len(all))
	var starting errgroup.Group
	for i, options := range all {
		starting.Go(func() (err error) {
			worlds[i], err = devcluster.Start(ctx, options)
			return err
		})
	}
	err := starting.Wait()
	var described []json.RawMessage
	for _, w := range worlds {
		if w != nil {
			DeferCleanup(w.Stop)
			described = append(described, w.Bytes())
		}
	}
	Expect(err).NotTo(HaveOccurred())
	data, err := json.Marshal(described)
	Expect(err).NotTo(HaveOccurred())
	return data
}, func(data []byte) {
	var described []json.RawMessage
	Expect(json.Unmarshal(data, &described)).To(Succeed())
	for i, w := range []**devcluster.World{&world, &judged} {
		var err error
		*w, err = devcluster.Connect(described[i])
		Expect(err).NotTo(HaveOccurred())
	}
})
