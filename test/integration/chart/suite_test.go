// Package chart_test installs, tests, upgrades and removes the Helm chart by Helm itself on a real control plane, on which a node stand-in
// runs the pods of hooks: cases FLT-U12, FLT-U13 and FLT-U15 of docs/behaviour/faults.md.
package chart_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// bin is the folder of the programs that the image holds.
var bin string

func TestChart(t *testing.T) { suite.Run(t, "Chart") }

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	path, err := devcluster.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	_, err = devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	return []byte(filepath.Dir(path))
}, func(path []byte) { bin = string(path) })

// site is a control plane on which Warren is not installed, and the path of Helm.
type site struct {
	*devcluster.World
	helm string
}

func newSite(ctx SpecContext) site {
	GinkgoHelper()
	helm, err := devcluster.Helm(ctx)
	Expect(err).NotTo(HaveOccurred())
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	described := &devcluster.World{Access: cp.Access}
	world, err := devcluster.Connect(described.Bytes())
	Expect(err).NotTo(HaveOccurred())
	s := site{world, helm}
	s.startNode()
	return s
}

// chart writes the chart of a version.
func (s site) chart(ctx context.Context, version string) string {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(s.Dir, "chart-"+version)
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/chart", "-o", path, "-version", version)
	cmd.Dir = root
	answer, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(answer))
	return path
}

// tryHelm runs Helm as a cluster admin, in namespace warren-system, and returns all that it printed.
func (s site) tryHelm(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.helm, append(args, "--namespace=warren-system")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(controlplane.Admin),
		"HELM_CACHE_HOME="+s.Dir, "HELM_CONFIG_HOME="+s.Dir, "HELM_DATA_HOME="+s.Dir)
	answer, err := cmd.CombinedOutput()
	GinkgoWriter.Printf("helm %q: %v\n%s\n", args, err, answer)
	return string(answer), err
}

// runHelm runs a command of Helm that must succeed.
func (s site) runHelm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	answer, err := s.tryHelm(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), "helm %q:\n%s", args, answer)
	return answer
}
