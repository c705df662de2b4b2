//go:build linux

// Command e2e deploys, upgrades and removes the image on a real node: `make e2e-node`. It starts a real Kubernetes node in Linux namespaces
// of its own, and deploys the version that PREVIOUS names as an admin would. It begins the demo, upgrades to this version while work is
// under way, kills the leader, and plays the rest of the demo. It goes back to the previous version and up again. It removes the operator
// in several orders, and looks at what is left, in the cluster and on the machine. A second node gets the Helm chart, plays the same demo,
// and ends with helm uninstall and a new install. It needs root and some Debian packages; where they are missing it says so and exits with
// 2.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/warren-tenancy/warren/test/e2e/node"
)

// insideMode is the argument of the process that runs inside the node's enclosure.
const insideMode = "inside"

// failed is the exit code of a failed run. The process inside prints the reason before it ends with it.
const failed = 1

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case node.InitMode:
			node.Init(os.Args[2:])
		case insideMode:
			os.Exit(playInside(os.Args[2], os.Args[3], os.Args[4]))
		}
		fmt.Fprintf(os.Stderr, "error: unknown argument %q: e2e takes none\n", os.Args[1])
		os.Exit(failed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := prepareOutside(ctx)
	interrupted := ctx.Err() != nil
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "e2e-node: "+err.Error())
	var lack missing
	switch {
	case interrupted:
		os.Exit(130)
	case errors.As(err, &lack):
		os.Exit(2)
	}
	os.Exit(failed)
}

// missing is the error that this machine lacks what a node needs.
type missing struct{ error }

// prepareOutside prepares what needs the outer network, then plays the stories inside enclosures.
func prepareOutside(ctx context.Context) (err error) {
	c := clock{time.Now()}
	if err := missingRequirements(ctx); err != nil {
		return missing{err}
	}
	stories, err := chooseStories(os.Getenv("STORY"))
	if err != nil {
		return err
	}
	enclosure, err := node.NewEnclosure()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, enclosure.Close())
		if err == nil {
			c.printSeen("all of it is gone: no process, mount, interface, cgroup or file is left")
		}
	}()
	s := supplies{made: enclosure.Dir}
	c.printSeen("building the node's programs, the image and the demo")
	if err := s.prepare(ctx); err != nil {
		return err
	}
	c.printSeen("built")
	if err := runInside(ctx, enclosure, s, c, stories[0]); err != nil {
		return err
	}
	for _, story := range stories[1:] {
		another, err := node.NewEnclosure()
		if err != nil {
			return err
		}
		if err := errors.Join(runInside(ctx, another, s, c, story), another.Close()); err != nil {
			return err
		}
	}
	return nil
}

// chooseStories returns the story that $STORY names, or both.
func chooseStories(named string) ([]string, error) {
	all := []string{manifests, chart}
	switch {
	case named == "":
		return all, nil
	case slices.Contains(all, named):
		return []string{named}, nil
	}
	return nil, fmt.Errorf("invalid STORY %q: must be one of %q", named, all)
}

// runInside plays a story in an enclosure.
func runInside(ctx context.Context, enclosure *node.Enclosure, s supplies, c clock, story string) error {
	code, err := enclosure.Run(ctx, insideMode, c.String(), s.made, story)
	if err == nil && code != 0 {
		err = fmt.Errorf("it failed; the logs are in %s", s.reports())
	}
	return err
}
