package tenants_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// sudoMode is what the configuration says about sudo; empty for the default, Legacy.
type sudoMode string

// text is a configuration file with that mode.
func (m sudoMode) text() string {
	text := "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"
	if m != "" {
		text += "sudo: {mode: " + string(m) + "}\n"
	}
	return text
}

// options adds the mode to the options of a World.
func (m sudoMode) options(options devcluster.Options) devcluster.Options {
	options.Operator.Config = m.text()
	return options
}

// inBothModes is a case that holds in both modes of sudo, each in a World of its own.
func inBothModes(text, key string, body func(ctx SpecContext, f *fixture)) {
	It(text, func(ctx SpecContext) { body(ctx, of(world, key)) })
	It(text+", in mode Constrained", func(ctx SpecContext) { body(ctx, constrainedly(key)) })
}

// constrainedly is the fixture of a case in the World in which sudo is constrained.
func constrainedly(key string) *fixture {
	GinkgoHelper()
	needsConstrained()
	f := of(constrained, key)
	f.mode = "Constrained"
	return f
}

// needsConstrained skips a case if the API server doesn't know constrained impersonation.
func needsConstrained() {
	GinkgoHelper()
	if constrained == nil {
		Skip("this API server doesn't know constrained impersonation")
	}
}

// both are the Worlds of the suite as they are sent to its processes: legacy, constrained.
type both [2][]byte

func startBoth(ctx SpecContext, users map[string][]string) []byte {
	GinkgoHelper()
	var started [2]*devcluster.World
	var starting errgroup.Group
	for i, mode := range []sudoMode{"", "Constrained"} {
		if mode != "" && devcluster.MinorVersion().LessThan(version.MajorMinor(1, 36)) {
			continue
		}
		starting.Go(func() error {
			w, err := devcluster.Start(ctx, mode.options(devcluster.Options{ControlPlane: controlplane.Options{Users: users}}))
			started[i] = w
			return err
		})
	}
	err := starting.Wait()
	var data both
	for i, w := range started {
		if w != nil {
			DeferCleanup(w.Stop)
			data[i] = w.Bytes()
		}
	}
	Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(data)
	Expect(err).NotTo(HaveOccurred())
	return text
}

func connectBoth(text []byte) {
	GinkgoHelper()
	var data both
	Expect(json.Unmarshal(text, &data)).To(Succeed())
	var err error
	world, err = devcluster.Connect(data[0])
	Expect(err).NotTo(HaveOccurred())
	if data[1] != nil {
		constrained, err = devcluster.Connect(data[1])
		Expect(err).NotTo(HaveOccurred())
	}
}
