// Command playground is what `make up` and `make down` run: a control plane and the operator in the background, on
// loopback, with a kubeconfig for each user in .dev.
//
// Three processes take part. `up` starts `supervise` in a session of its own, and returns when that is ready. `supervise` owns the control
// plane and the operator, which end with it. While it runs, it holds a lock on .dev/playground.lock. The playground runs if that lock is
// held, whatever the file with its process number contains. `down` asks `supervise` to end.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/test/devcluster"
)

func main() {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime complains on stderr that it has no logger
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "playground: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	p := place{root: root}
	switch {
	case len(args) == 1 && args[0] == "up":
		if err := checkOverlay(); err != nil {
			return err
		}
		return startPlayground(ctx, p, os.Getenv("USERS"))
	case len(args) == 1 && args[0] == "down":
		return stopPlayground(p)
	case len(args) == 2 && args[0] == "supervise":
		return supervise(ctx, p, args[1])
	}
	return fmt.Errorf("unknown arguments %q: type up or down", args)
}
