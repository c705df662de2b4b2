// Command demoinformers is what `make demo-informers` runs: it plays the demonstration of informers that follow RBAC.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/warren-tenancy/warren/test/memcached"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := memcached.Play(ctx, os.Stdout); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "\ndemo-informers: "+err.Error())
		os.Exit(1)
	}
}
