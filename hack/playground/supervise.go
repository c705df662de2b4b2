package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/controlplane"
	"github.com/warren-tenancy/warren/test/process"
)

// restartAfter is the pause before an operator that ended is started again.
const restartAfter = 2 * time.Second

// supervise owns the playground's processes until it is asked to end.
func supervise(ctx context.Context, p place, userText string) error {
	lock, locked, err := p.lock()
	if err != nil {
		return err
	}
	reports := os.NewFile(3, "reports")
	if !locked {
		return report(reports, failedLine, "another playground has started at the same time")
	}
	defer func() { _ = lock.Unlock() }()
	if err := os.WriteFile(p.pidFile(), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return report(reports, failedLine, err.Error())
	}
	world, err := furnish(ctx, p, userText, reports)
	if err != nil {
		return errors.Join(report(reports, failedLine, err.Error()), p.clean())
	}
	_ = report(reports, readyLine, fmt.Sprintf("Kubernetes %s and the operator run at %s, with policies, webhooks and open access.",
		world.ControlPlane.Version, world.Config(controlplane.Admin).Host))
	_ = reports.Close() // `up` may go now
	watch(ctx, world)
	return errors.Join(world.Stop(), p.clean())
}

// report sends up a message.
func report(to io.Writer, kind, text string) error {
	log.Print(kind + text)
	_, err := fmt.Fprintln(to, kind+strings.ReplaceAll(text, "\n", lineBreak))
	return err
}

// furnish starts everything and puts the users' files in place.
func furnish(ctx context.Context, p place, userText string, reports io.Writer) (*test.World, error) {
	users, err := parseUsers(userText)
	if err != nil {
		return nil, err
	}
	if err := writeConfig(p); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.dev("manager.log")); err != nil {
		return nil, err
	}
	_ = report(reports, "", "starting etcd, API server, controller manager and the operator …")
	world, err := test.Start(ctx, test.Options{
		Webhooks:     true,
		Components:   []string{openAccess},
		ControlPlane: controlplane.Options{Dir: p.state(), Users: users},
		Operator:     test.OperatorOptions{Manager: p.manager(), Dir: p.dev(""), ConfigFile: p.config()},
	})
	if err != nil {
		return nil, err
	}
	users[controlplane.Admin] = nil
	if err := handOut(p, world, users); err != nil {
		return nil, errors.Join(err, world.Stop())
	}
	return world, nil
}

// openAccess lets the users of the playground make tenants.
const openAccess = "config/components/open-access"

// writeConfig writes the configuration that is deployed so, unless the user has one already.
func writeConfig(p place) error {
	if _, err := os.Stat(p.config()); err == nil {
		return nil
	}
	manifests, err := test.RenderWith("config/overlays/loopback", openAccess)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.config(), []byte(manifests.Configuration()), 0o644); err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return nil
}

// handOut writes the kubeconfigs, and puts kubectl into bin.
func handOut(p place, world *test.World, users map[string][]string) error {
	for user := range users {
		content, err := os.ReadFile(world.Kubeconfig(user))
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", user, err)
		}
		if err := os.WriteFile(p.kubeconfig(user), content, 0o600); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
		}
	}
	if target, err := filepath.EvalSymlinks(p.kubectl()); err == nil && target == world.KubectlPath {
		return nil
	}
	if err := os.RemoveAll(p.kubectl()); err != nil {
		return fmt.Errorf("replacing bin/kubectl: %w", err)
	}
	if err := os.Symlink(world.KubectlPath, p.kubectl()); err != nil {
		return fmt.Errorf("putting kubectl into bin: %w", err)
	}
	return nil
}

// watch starts an operator that ended again, as a cluster would. It returns when it is asked to, or when the control
// plane is gone: without that there is nothing left to play with.
func watch(ctx context.Context, world *test.World) {
	cp, operator := world.ControlPlane, world.Operator
	ended := func(p *process.Process) { log.Printf("%s ended with exit code %d", p.Name, p.ExitCode()) }
	for {
		select {
		case <-ctx.Done():
			return
		case <-cp.Etcd.Done():
			ended(cp.Etcd)
			return
		case <-cp.APIServer.Done():
			ended(cp.APIServer)
			return
		case <-cp.Controllers.Done():
			ended(cp.Controllers)
			return
		case <-operator.Process().Done():
			ended(operator.Process())
			select {
			case <-ctx.Done():
				return
			case <-time.After(restartAfter):
			}
			if err := operator.Start(ctx); err != nil {
				log.Print(err)
			}
		}
	}
}
