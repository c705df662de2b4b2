// Command vetadmin writes the vetted list of one version of Kubernetes into docs/vetted: it starts the control plane that the
// tests build, with Warren's manifests, but without the policies, and runs `kubectl warren vet --write` there.
// WARREN_KUBERNETES_VERSION chooses another version, as in the tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

func main() {
	note := flag.String("note", "not reviewed", "what the review of the list has shown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *note); err != nil {
		fmt.Fprintln(os.Stderr, "vetadmin: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, note string) (err error) {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	world, err := devcluster.Start(ctx, devcluster.Options{WithoutOperator: true, WithoutPolicies: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	// ClusterRole admin has its aggregated rules only a moment after the control plane is ready.
	problem := ""
	waited := wait.PollUntilContextTimeout(ctx, time.Second, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		out, problems, code := world.Kubectl(ctx, controlplane.Admin, "warren", "vet", "--write", "--dir", filepath.Join(root, "docs", "vetted"),
			"--note", note)
		fmt.Print(out)
		problem = strings.TrimSpace(problems)
		return code == 0, nil
	})
	if waited != nil {
		return fmt.Errorf("writing the list: %s (%w)", problem, waited)
	}
	if problem != "" { // a warning
		fmt.Fprintln(os.Stderr, problem)
	}
	return nil
}
