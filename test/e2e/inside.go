//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/e2e/node"
)

// run is one run on one node.
type run struct {
	supplies
	clock
	dir  string
	node *node.Node
	// bobIsSudoer is whether bob may use sudo in the tenant.
	bobIsSudoer bool
	// askers is how many askers were started.
	askers int
	world  *devcluster.World
}

// overlay is the overlay that is deployed: with it, the demo's people may make their tenants themselves.
const overlay = "open"

// The stories, each of which is played on a node of its own.
const (
	manifests = "manifests"
	chart     = "chart"
)

// playInside plays all scenes of a story and returns the exit code.
func playInside(began, made, story string) int {
	log.SetLogger(logr.Discard())                                             // the client library logs only what its answers say, too
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy"} { // no proxy can be reached from here
		_, _ = os.Unsetenv(name), os.Unsetenv(strings.ToUpper(name))
	}
	// A run usually takes five minutes. This ends one that hangs.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	c, err := parseClock(began)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return failed
	}
	r := &run{supplies: supplies{made}, clock: c, dir: node.Dir()}
	for _, scene := range map[string][]func(context.Context) error{
		manifests: {
			r.startNode, r.deployPrevious, r.collectorKnowsUs,
			r.demoUntil("propagation"), r.upgrade, r.killLeader, r.demoAfter("propagation"), r.checkReplicas,
			r.downgrade, r.upgradeAgain, r.takeOffInEveryOrder,
		},
		chart: {
			r.startNode, r.installChart, r.collectorKnowsUs,
			r.demoUntil("propagation"), r.upgradeChart, r.demoAfter("propagation"), r.checkReplicas,
			r.hardenChart, r.uninstallChart,
		},
	}[story] {
		if err = scene(ctx); err != nil {
			r.printSeen("FAILED: %v", err)
			r.keepLogs(ctx)
			break
		}
	}
	if errors.Join(err, writeReport(story, err == nil)) != nil {
		return failed
	}
	return 0
}

// playedCases are the cases of docs/behaviour/faults.md that a story plays.
var playedCases = map[string][]string{
	manifests: {"FLT-U02", "FLT-U05", "FLT-U06", "FLT-U08"},
	chart:     {"FLT-U12", "FLT-U13"},
}

// writeReport writes for `make spec-coverage` how a story ended, as go test -json does.
func writeReport(story string, passed bool) error {
	action := "pass"
	if !passed {
		action = "fail"
	}
	var text []byte
	for _, number := range playedCases[story] {
		text = fmt.Appendf(text, "{\"Action\":%q,\"Test\":%q}\n", action, number)
	}
	if err := os.MkdirAll(".reports", 0o755); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(".reports", "e2e-node-"+story+".json"), text, 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (r *run) startNode(ctx context.Context) error {
	n, err := node.Start(ctx, r.pause())
	if err != nil {
		return err
	}
	r.node = n
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	r.world, err = devcluster.Connect((&devcluster.World{Access: n.ControlPlane.Access, Plugins: root + "/bin"}).Bytes())
	if err != nil {
		return err
	}
	r.printSeen("a node of Kubernetes %s is Ready", n.ControlPlane.Version)
	for _, v := range []version{r.previous(), r.current()} {
		if err := n.Import(ctx, r.imageFile(v)); err != nil {
			return err
		}
	}
	r.printSeen("both images are loaded")
	return nil
}

// kubectl runs kubectl as the cluster admin. If it fails, the error has its output.
func (r *run) kubectl(ctx context.Context, args ...string) (string, error) {
	return r.kubectlAs(ctx, controlplane.Admin, args...)
}

func (r *run) kubectlAs(ctx context.Context, user string, args ...string) (string, error) {
	stdout, stderr, code := r.world.Kubectl(ctx, user, args...)
	if code != 0 {
		return "", fmt.Errorf("kubectl %s, as %s: exit code %d: %s", strings.Join(args, " "), user, code, strings.TrimSpace(stdout+stderr))
	}
	return strings.TrimSpace(stdout), nil
}

// soon is how long anything may take on a busy machine, unless a lease or a back-off is in its way.
const soon = 60 * time.Second

// waitUntil calls wrong until it returns nil. It returns an error if that takes too long, with what is still wrong, or as soon as a
// component of the node has ended.
func (r *run) waitUntil(ctx context.Context, within time.Duration, what string, wrong func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		if err := r.node.Running(); err != nil {
			return false, err
		}
		problem := wrong(ctx)
		if problem == nil {
			return true, nil
		}
		if ctx.Err() == nil { // else it says no more than that the time is over
			last = problem
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case wait.Interrupted(err):
		return fmt.Errorf("%s: not within %s: %w", what, within, last)
	}
	return fmt.Errorf("%s: %w", what, err)
}
