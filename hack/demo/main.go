// Command demo stands behind `make demo`: it starts a control plane and the operator on loopback, in a temporary
// folder, walks through the story of script.go with kubectl and each user's own token, and checks every answer. It
// leaves no process and no file behind, also when it is interrupted.
//
// With -connect it plays on a control plane that somebody else started, such as that of `make e2e-node`; -until and
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

	"github.com/warren-tenancy/warren/internal/devcluster"
)

func main() {
	connect := flag.String("connect", "", "a file that describes a control plane with an operator, in place of one of its own")
	after := flag.String("after", "", "with -connect: leave out the scenes up to this one")
	until := flag.String("until", "", "with -connect: leave out the scenes behind this one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go endWithParent(ctx, cancel)
	err := playStory(ctx, *connect, *after, *until)
	interrupted := ctx.Err() != nil
	cancel()
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; nothing is left behind")
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

func playStory(ctx context.Context, connect, after, until string) error {
	if connect != "" {
		return playElsewhere(ctx, connect, after, until)
	}
	return demo(ctx)
}

func demo(ctx context.Context) error {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	for _, name := range []string{"manager", "kubectl-warren", "kubectl-sudo"} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err != nil {
			return fmt.Errorf("bin/%s is missing; run: make build", name)
		}
	}
	if err := os.Chdir(root); err != nil { // the script names its files from here
		return fmt.Errorf("changing into the clone: %w", err)
	}
	began := time.Now()
	fmt.Println("Starting etcd, kube-apiserver, kube-controller-manager and the operator on loopback, with policies, webhooks and open access.")
	world, err := devcluster.Start(ctx, devcluster.Options{
		Webhooks: true, Components: []string{"config/components/open-access", "config/components/distribution"},
		Operator: devcluster.OperatorOptions{Manager: filepath.Join(root, "bin", "manager")},
	})
	if err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s and the operator are ready after %s.\n", world.ControlPlane.Version, seconds(time.Since(began)))
	p := &player{root: root, world: world, times: []string{"start " + seconds(time.Since(began))}}
	err = p.play(ctx, fullStory())
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w\n\nThe end of the operator's log:\n%s", err, world.Operator.Process().LogTail(15))
	}
	if err := errors.Join(err, world.Stop()); err != nil {
		return err
	}
	fmt.Printf("\nAll %d expectations held. %s. Everything is stopped and removed.\n", p.checked, strings.Join(p.times, ", "))
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
