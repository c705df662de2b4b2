package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// restartAfter is the pause before an operator that ended is started again.
const restartAfter = 2 * time.Second

// supervise owns the playground's processes until it is asked to end.
func supervise(ctx context.Context, p place, userText string) error {
	lock, locked, err := p.tryLock()
	if err != nil {
		return err
	}
	reports := os.NewFile(3, "reports")
	if !locked {
		return reportLine(reports, failedLine, "another playground has started at the same time")
	}
	defer func() { _ = lock.Unlock() }()
	if err := os.WriteFile(p.pidFile(), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return reportLine(reports, failedLine, err.Error())
	}
	world, err := startWorld(ctx, p, userText, reports)
	if err != nil {
		return errors.Join(reportLine(reports, failedLine, err.Error()), p.removeRemains())
	}
	_ = reportLine(reports, readyLine, fmt.Sprintf("Kubernetes %s and the operator run at %s, with policies and webhooks, as with overlay %s.",
		world.ControlPlane.Version, world.Config(controlplane.Admin).Host, overlay()))
	_ = reports.Close() // `up` reads nothing after readyLine
	billing := &exporter{place: p, world: world}
	watchOperator(ctx, world, billing)
	return errors.Join(billing.stop(), world.Stop(), p.removeRemains())
}

// reportLine logs a message and sends it to the process of `up`.
func reportLine(to io.Writer, kind, text string) error {
	log.Print(kind + text)
	_, err := fmt.Fprintln(to, kind+strings.ReplaceAll(text, "\n", lineBreak))
	return err
}

// startWorld starts everything and writes the users' kubeconfigs.
func startWorld(ctx context.Context, p place, userText string, reports io.Writer) (*devcluster.World, error) {
	users, err := parseUsers(userText)
	if err != nil {
		return nil, err
	}
	known := maps.Clone(users)
	known[devcluster.ExporterAccount] = devcluster.ExporterGroups()
	if err := writeConfig(p); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(p.devFile("manager.log")); err != nil {
		return nil, err
	}
	_ = reportLine(reports, "", "starting etcd, API server, controller manager and the operator …")
	world, err := devcluster.Start(ctx, devcluster.Options{
		Webhooks:     true,
		Components:   components(overlay()),
		ControlPlane: controlplane.Options{Dir: p.stateDir(), Users: known},
		Operator:     devcluster.OperatorOptions{Manager: p.managerFile(), Dir: p.devFile(""), ConfigFile: p.configFile()},
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

// overlay is the overlay of `make deploy` that the playground behaves like.
func overlay() string { return cmp.Or(os.Getenv("OVERLAY"), "standard") }

// checkOverlay returns an error if the playground can't behave like the overlay.
func checkOverlay() error {
	if name := overlay(); name != "standard" && name != "open" {
		return fmt.Errorf("OVERLAY=%q: the playground has standard and open", name)
	}
	return nil
}

// components let people of the playground use ResourceDistributions, budgets and sudo on request, a billing exporter run and,
// with overlay open, every user view and make tenants.
func components(overlay string) []string {
	all := []string{"config/components/distribution", "config/components/budgets", "config/components/requests",
		"config/components/billing-sqlite"}
	if overlay == "open" {
		all = append(all, "config/components/open-access")
	}
	return all
}

// otherOverlay is the overlay whose configuration a playground may have left behind.
var otherOverlay = map[string]string{"standard": "open", "open": "standard"}

// writeConfig writes the configuration of the overlay, unless the user has changed the file that exists already.
func writeConfig(p place) error {
	if present, err := os.ReadFile(p.configFile()); err == nil {
		other, err := configOf(p, otherOverlay[overlay()])
		if err != nil || string(present) != other {
			return err
		}
	}
	text, err := configOf(p, overlay())
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.configFile(), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return nil
}

// configOf returns the configuration that the manifests of an overlay deploy, with a billing ledger.
func configOf(p place, overlay string) (string, error) {
	manifests, err := devcluster.RenderWith("config/overlays/loopback", components(overlay)...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nbilling:\n  driver: sqlite\n  sqlite: {path: %q}\n  flushInterval: 1s\n", manifests.Configuration(),
		p.ledgerFile()), nil
}

// handOut writes the kubeconfigs, and puts kubectl into bin.
func handOut(p place, world *devcluster.World, users map[string][]string) error {
	for user := range users {
		content, err := os.ReadFile(world.Kubeconfig(user))
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", user, err)
		}
		if err := os.WriteFile(p.kubeconfig(user), content, 0o600); err != nil {
			return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
		}
	}
	if target, err := filepath.EvalSymlinks(p.kubectlFile()); err == nil && target == world.KubectlPath {
		return nil
	}
	if err := os.RemoveAll(p.kubectlFile()); err != nil {
		return fmt.Errorf("replacing bin/kubectl: %w", err)
	}
	if err := os.Symlink(world.KubectlPath, p.kubectlFile()); err != nil {
		return fmt.Errorf("putting kubectl into bin: %w", err)
	}
	return nil
}

// watchOperator starts the operator and the billing exporter again when they end, as a cluster would, and when the configuration file has
// changed. It returns when ctx is done, or when a process of the control plane has ended.
func watchOperator(ctx context.Context, world *devcluster.World, billing *exporter) {
	cp, operator := world.ControlPlane, world.Operator
	look := time.NewTicker(time.Second)
	defer look.Stop()
	known, _ := os.ReadFile(operator.ConfigFile)
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
		case <-look.C:
			if now, err := os.ReadFile(operator.ConfigFile); err == nil && !bytes.Equal(now, known) {
				known = now
				log.Print("the configuration has changed: the operator starts again")
				if _, err := operator.Stop(); err != nil {
					log.Print(err)
				}
				if err := billing.stop(); err != nil {
					log.Print(err)
				}
			}
			billing.keepRunning(ctx)
		case <-operator.Process().Done():
			ended(operator.Process())
			select {
			case <-ctx.Done():
				return
			case <-time.After(restartAfter):
			}
			if err := operator.StartAlive(ctx); err != nil {
				log.Print(err)
			}
		}
	}
}
