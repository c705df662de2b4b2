// Command demo is what `make demo` runs: it starts a control plane and the operator on loopback, in a temporary
// folder, walks through the story of script.go with kubectl and each user's own token, and checks every answer. It
// leaves no process and no file behind, also when it is interrupted.
//
// With -warehouse=away, the billing exporter never reaches its warehouse, and everything else must still work.
//
// With -connect, it plays on a control plane that another program started, such as that of `make e2e-node`; -until and
// -after choose a part of the story.
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

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

func main() {
	connect := flag.String("connect", "", "a file that describes a control plane with an operator, in place of one of its own")
	after := flag.String("after", "", "with -connect: begin after the scene of this name")
	until := flag.String("until", "", "with -connect: end with the scene of this name")
	there := flag.String("warehouse", "there", "there: the ledger is a file, and the last scene reads it by SQL; away: the billing exporter "+
		"finds no warehouse")
	flag.Parse()
	log.SetLogger(logr.Discard()) // otherwise controller-runtime complains on stderr that it has no logger
	if flag.NArg() > 0 || *there != "there" && *there != "away" {
		fmt.Fprintf(os.Stderr, "demo: -warehouse must be \"there\" or \"away\" (it is %q), and no words may follow the flags (there are %d)\n",
			*there, flag.NArg())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go endWithParent(ctx, cancel)
	err := playStory(ctx, *connect, *after, *until, *there == "away")
	interrupted := ctx.Err() != nil
	cancel()
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; it leaves no process and no file behind")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\ndemo: "+err.Error())
		os.Exit(1)
	}
}

// endWithParent ends the demo when the program that started it is gone: `go run` doesn't pass on a SIGTERM.
func endWithParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	for ctx.Err() == nil {
		if os.Getppid() != parent {
			cancel()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func playStory(ctx context.Context, connect, after, until string, away bool) error {
	if connect != "" {
		return playElsewhere(ctx, connect, after, until)
	}
	return demo(ctx, away)
}

func demo(ctx context.Context, away bool) error {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	for _, name := range []string{"manager", programs.Billing, "kubectl-warren", "kubectl-sudo"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return fmt.Errorf("bin/%s is missing; run: make build", name)
		}
	}
	if err := os.Chdir(root); err != nil { // the names of files in the script are relative to this folder
		return fmt.Errorf("changing into the clone: %w", err)
	}
	folder, err := os.MkdirTemp("", "warren-ledger-")
	if err != nil {
		return fmt.Errorf("making the ledger's folder: %w", err)
	}
	ledger := "there"
	if away {
		ledger = "away"
	}
	err = playHere(ctx, root, warehouse{folder: folder, away: away})
	if ctx.Err() == nil { // an interrupted demo hasn't failed
		err = errors.Join(err, writeReport(root, ledger, err))
	}
	return errors.Join(err, os.RemoveAll(folder))
}

// playHere plays the whole story on a control plane of its own.
func playHere(ctx context.Context, root string, ledger warehouse) error {
	began := time.Now()
	fmt.Println("Starting etcd, kube-apiserver, kube-controller-manager, the operator and its billing exporter on loopback, with policies " +
		"and webhooks, as with overlay standard.")
	manager := filepath.Join(root, "bin", "manager")
	world, err := devcluster.Start(ctx, devcluster.Options{
		ControlPlane: controlplane.Options{Users: map[string][]string{devcluster.ExporterAccount: devcluster.ExporterGroups()}},
		Webhooks:     true,
		Components: []string{"config/components/distribution", "config/components/budgets", "config/components/requests",
			"config/components/billing-sqlite"},
		Operator: devcluster.OperatorOptions{Manager: manager}, WithoutOperator: true,
	})
	if err != nil {
		return err
	}
	world.OperatorConfig += ledger.configuration()
	if _, err := world.StartOperator(ctx); err != nil {
		return errors.Join(err, world.Stop())
	}
	exporter, err := ledger.startExporter(ctx, world, manager)
	if err != nil {
		return errors.Join(err, world.Stop())
	}
	fmt.Printf("Kubernetes %s, the operator and its exporter are ready after %s.\n", world.ControlPlane.Version, seconds(time.Since(began)))
	p := &player{root: root, world: world, ledger: ledger, times: []string{"start " + seconds(time.Since(began))}}
	last := bills()
	if ledger.away {
		last = billsWait()
	}
	err = p.play(ctx, append(fullStory(), last))
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w\n\nThe end of the operator's log:\n%s\nof the exporter's:\n%s", err, world.Operator.Process().LogTail(15),
			exporter.LogTail(15))
	}
	err = errors.Join(err, exporter.Stop())
	if err := errors.Join(err, world.Stop()); err != nil {
		return err
	}
	fmt.Printf("\nAll %d expectations held. %s. Everything is stopped and removed.\n", p.checked, strings.Join(p.times, ", "))
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
