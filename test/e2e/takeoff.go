//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
)

// takeOffInEveryOrder removes the operator in four orders: as documented, its namespace first, its policies first, its CRDs first. It
// deploys the operator again after the first three, and no copy may have been written. In no order may a namespace be lost.
func (r *run) takeOffInEveryOrder(ctx context.Context) error {
	before, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	for _, order := range []struct {
		name    string
		takeOff func(context.Context) error
	}{
		{"make undeploy", r.undeployAndCheck},
		{"the namespace first", r.deleteNamespaceFirst},
		{"the policies first", r.deletePoliciesFirst},
	} {
		if err := order.takeOff(ctx); err != nil {
			return fmt.Errorf("taking off, %s: %w", order.name, err)
		}
		if err := r.checkUntouched(ctx, before); err != nil {
			return fmt.Errorf("taken off, %s: %w", order.name, err)
		}
		if err := r.deploy(ctx, r.current()); err != nil {
			return err
		}
		if err := r.checkUntouched(ctx, before); err != nil {
			return fmt.Errorf("deployed again after %s: %w", order.name, err)
		}
		r.printSeen("taken off, %s, and deployed again: %d namespaces and %d copies untouched", order.name, len(before.namespaces),
			len(before.copies))
	}
	return r.removeCRDsFirst(ctx, before)
}

func (r *run) undeployAndCheck(ctx context.Context) error {
	return errors.Join(r.undeploy(ctx), r.checkRemains(ctx))
}

// deleteNamespaceFirst deletes the operator's namespace, as an admin in a hurry does. Users can work, but requests that need the webhooks
// are refused.
func (r *run) deleteNamespaceFirst(ctx context.Context) error {
	if _, err := r.kubectl(ctx, "delete", "namespace", operatorNamespace, "--timeout=60s"); err != nil {
		return err
	}
	alice, plain := r.world.As("alice"), build.ConfigMap(tenant, "plain-work", "x")
	if err := errors.Join(alice.Create(ctx, plain), alice.Delete(ctx, plain)); err != nil {
		return fmt.Errorf("plain work without the operator: %w", err)
	}
	err := alice.Create(ctx, build.SubNamespace(tenant, "unjudged"), client.DryRunAll)
	if err == nil {
		return errors.New("a SubNamespace was accepted although nobody judged it")
	}
	return nil
}

// deletePoliciesFirst deletes all policies and their bindings by hand, then undeploys the operator.
func (r *run) deletePoliciesFirst(ctx context.Context) error {
	if _, err := r.kubectl(ctx, "delete", "validatingadmissionpolicybindings,validatingadmissionpolicies",
		"--selector=app.kubernetes.io/name=warren"); err != nil {
		return err
	}
	return r.undeploy(ctx)
}

// removeCRDsFirst undeploys everything, the CRDs first. Before that, our objects are saved to a file.
func (r *run) removeCRDsFirst(ctx context.Context, before census) error {
	saved := filepath.Join(r.dir, "saved.yaml")
	if err := r.runMake(ctx, r.current(), "undeploy", "CRDS=true", "SAVE="+saved); err != nil {
		return err
	}
	if err := r.operatorGone(ctx); err != nil {
		return err
	}
	if err := r.checkNamespaces(ctx, before); err != nil {
		return fmt.Errorf("the CRDs first: %w", err)
	}
	crds, err := r.kubectl(ctx, "get", "crds", "--output=name")
	if err != nil {
		return err
	}
	rights, err := r.kubectl(ctx, "get", "clusterrolebindings,clusterroles,rolebindings", "--all-namespaces",
		"--selector=tenancy.warren.dev/access", "--output=name")
	if err != nil || rights != "" {
		return errors.Join(err, fmt.Errorf("rights are left: %q", rights))
	}
	r.printSeen("make undeploy CRDS=true: %d namespaces live, no right is left; CRDs: %q", len(before.namespaces), crds)
	return nil
}

// operatorGone waits until the operator's namespace is gone.
func (r *run) operatorGone(ctx context.Context) error {
	return r.waitUntil(ctx, 2*soon, "the operator's namespace goes", func(ctx context.Context) error {
		err := r.world.Admin().Get(ctx, client.ObjectKey{Name: operatorNamespace}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New(operatorNamespace+" is still there"))
	})
}
