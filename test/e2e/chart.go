//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// chartValues make the chart's objects those of the overlay: see docs/guides/helm.md.
var chartValues = []string{
	"image.repository=localhost/warren", "image.tag=e2e", "components.openAccess=true", "components.distribution=true",
	"components.budgets=true", "components.requests=true",
}

// installChart installs the chart as docs/guides/helm.md has it, and lets its test run in a pod.
func (r *run) installChart(ctx context.Context) error {
	if err := r.runHelm(ctx, "install", "--create-namespace"); err != nil {
		return err
	}
	if _, err := r.kubectl(ctx, "label", "namespace", operatorNamespace,
		"pod-security.kubernetes.io/enforce=restricted", "tenancy.warren.dev/protected=true"); err != nil {
		return err
	}
	if err := r.checkDeployed(ctx); err != nil {
		return err
	}
	return r.testChart(ctx)
}

// upgradeChart changes the configuration in the middle of alice's work, which replaces the operator's pods.
func (r *run) upgradeChart(ctx context.Context) error {
	return r.whileWorking(ctx, "helm", "helm upgrade with another configuration", func(ctx context.Context) error {
		if err := r.runHelm(ctx, "upgrade", "--set", "controller.config.concurrency=8"); err != nil {
			return err
		}
		return r.checkDeployed(ctx)
	})
}

// hardenChart changes to component hardened: copies stay untouched, and the operator binds its own role in each namespace of the forest.
func (r *run) hardenChart(ctx context.Context) error {
	before, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	if err := r.runHelm(ctx, "upgrade", "--set", "components.distribution=false,components.hardened=true"); err != nil {
		return err
	}
	if err := r.checkDeployed(ctx); err != nil {
		return err
	}
	var bound int
	err = r.waitUntil(ctx, soon, "the operator binds its own role", func(ctx context.Context) error {
		bindings, err := r.ownRights(ctx)
		bound = len(bindings)
		if err == nil && bound == 0 {
			err = errors.New("no RoleBinding " + v1alpha1.OperatorBinding + " is there")
		}
		return err
	})
	if err != nil {
		return err
	}
	r.printSeen("component hardened: the operator has bound its role in %d namespaces", bound)
	return r.checkUntouched(ctx, before)
}

// uninstallChart uninstalls the release and installs it again.
func (r *run) uninstallChart(ctx context.Context) error {
	before, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	if err := r.runHelm(ctx, "uninstall"); err != nil {
		return err
	}
	left, err := r.ownRights(ctx)
	if err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%d RoleBindings %s are left", len(left), v1alpha1.OperatorBinding))
	}
	if _, err := r.kubectlAs(ctx, "alice", "auth", "can-i", "create", "deployments", "--namespace="+tenant); err != nil {
		return fmt.Errorf("people's rights should have stayed: %w", err)
	}
	if err := r.checkUntouched(ctx, before); err != nil {
		return fmt.Errorf("after helm uninstall: %w", err)
	}
	if err := r.runHelm(ctx, "install"); err != nil {
		return err
	}
	if err := errors.Join(r.checkDeployed(ctx), r.testChart(ctx)); err != nil {
		return err
	}
	r.printSeen("uninstalled and installed again: %d namespaces and %d copies untouched", len(before.namespaces), len(before.copies))
	return r.checkUntouched(ctx, before)
}

// ownRights are the RoleBindings by which the operator binds its own role.
func (r *run) ownRights(ctx context.Context) ([]rbacv1.RoleBinding, error) {
	var bindings rbacv1.RoleBindingList
	err := r.world.Admin().List(ctx, &bindings, client.MatchingLabels{v1alpha1.LabelAccess: v1alpha1.AccessOperator})
	return bindings.Items, err
}

// testChart runs the release's test until it passes: the pods may not answer the webhooks yet.
func (r *run) testChart(ctx context.Context) error {
	return r.waitUntil(ctx, soon, "helm test", func(ctx context.Context) error { return r.runHelm(ctx, "test", "--logs") })
}

// runHelm runs a command of Helm on the release as a cluster admin.
func (r *run) runHelm(ctx context.Context, command string, flags ...string) error {
	helm, err := devcluster.Helm(ctx)
	if err != nil {
		return err
	}
	args := []string{command, "warren", "--namespace=" + operatorNamespace}
	if command == "install" || command == "upgrade" {
		args = append(args, r.chart(), "--set", strings.Join(chartValues, ","))
	}
	cmd := exec.CommandContext(ctx, helm, append(args, flags...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+r.world.Kubeconfig(controlplane.Admin), "HELM_CACHE_HOME="+r.dir,
		"HELM_CONFIG_HOME="+r.dir, "HELM_DATA_HOME="+r.dir)
	if answer, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w:\n%s", command, err, strings.TrimSpace(string(answer)))
	}
	r.printSeen("helm %s %s", command, strings.Join(flags, " "))
	return nil
}
