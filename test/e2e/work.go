//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// work is what alice and a cluster admin do while something changes: the stories FLT-S4 to FLT-S7 of docs/behaviour/faults.md, in steps.
type work struct {
	*run
	stem  string
	steps int
	// distributes is whether the ResourceDistribution is there.
	distributes bool
}

const (
	// atFirst is how many sub-namespaces there are before the change.
	atFirst = 5
	// stepPause is the pause between two steps.
	stepPause = 3 * time.Second
	// otherTenant is where the moving namespace goes.
	otherTenant = "shop"
)

func (w *work) child(i int) string  { return fmt.Sprintf("%s-%d", w.stem, i) }
func (w *work) moving() string      { return w.stem + "-moving" }
func (w *work) changing() string    { return w.stem + "-changing" }
func (w *work) distributed() string { return w.stem + "-distributed" }

// begin makes a Secret and sub-namespaces, and waits for the copies.
func (w *work) begin(ctx context.Context) error {
	if err := w.world.As("alice").Create(ctx, build.Source(build.Secret(tenant, w.stem, "first"), v1alpha1.ModeUpdate)); err != nil {
		return fmt.Errorf("alice creates a Secret: %w", err)
	}
	for i := range atFirst {
		if err := w.grow(ctx, i); err != nil {
			return err
		}
	}
	return w.waitUntil(ctx, soon, "the first copies", func(ctx context.Context) error {
		for i := range atFirst {
			if err := w.checkSecret(ctx, w.child(i), w.stem, "first"); err != nil {
				return err
			}
		}
		return nil
	})
}

// addMoving makes what the steps write: a namespace that moves, and a Secret that changes.
func (w *work) addMoving(ctx context.Context) error {
	if err := w.world.Admin().Create(ctx, build.Child(w.moving(), tenant)); err != nil {
		return fmt.Errorf("the admin creates a namespace in the tree: %w", err)
	}
	if err := w.world.As("alice").Create(ctx, build.Source(build.Secret(tenant, w.changing(), "0"), v1alpha1.ModeUpdate)); err != nil {
		return fmt.Errorf("alice creates a Secret: %w", err)
	}
	return nil
}

// until makes steps until a change has ended, and returns the errors of both.
func (w *work) until(ctx context.Context, change func(context.Context) error) (changed, worked error) {
	ended := make(chan error, 1)
	go func() { ended <- change(ctx) }()
	for {
		if worked == nil {
			w.steps++
			worked = w.step(ctx)
		}
		select {
		case changed = <-ended:
			return changed, worked
		case <-time.After(stepPause):
		}
	}
}

// step does a little of everything: it creates a sub-namespace, deletes another in every second step, changes the Secret, and moves the
// namespace. Once, it begins a distribution.
func (w *work) step(ctx context.Context) error {
	alice := w.world.As("alice")
	if err := w.grow(ctx, atFirst+w.steps); err != nil {
		return err
	}
	if w.steps%2 == 0 {
		if err := alice.Delete(ctx, build.SubNamespace(tenant, w.child(atFirst+w.steps-1))); err != nil {
			return fmt.Errorf("alice deletes a SubNamespace: %w", err)
		}
	}
	if err := alice.Update(ctx, build.Source(build.Secret(tenant, w.changing(), fmt.Sprint(w.steps)), v1alpha1.ModeUpdate)); err != nil {
		return fmt.Errorf("alice changes a Secret: %w", err)
	}
	if !w.distributes {
		if err := w.distribute(ctx); err != nil {
			return err
		}
	}
	parent := tenant
	if w.steps%2 == 1 {
		parent = otherTenant
	}
	return w.move(ctx, parent)
}

func (w *work) grow(ctx context.Context, i int) error {
	if err := w.world.As("alice").Create(ctx, build.SubNamespace(tenant, w.child(i))); err != nil {
		return fmt.Errorf("alice creates a SubNamespace: %w", err)
	}
	return nil
}

func (w *work) move(ctx context.Context, parent string) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelParent, parent))
	if err := w.world.Admin().Patch(ctx, build.Namespace(w.moving()), patch); err != nil {
		return fmt.Errorf("the admin moves a namespace below %s: %w", parent, err)
	}
	return nil
}

// deleteReports deletes the HierarchyConfigurations in which the operator listed the namespace that moved: alice must be able to create one
// in the demo.
func (w *work) deleteReports(ctx context.Context) error {
	for _, namespace := range []string{tenant, otherTenant} {
		report := &v1alpha1.HierarchyConfiguration{}
		report.Namespace, report.Name = namespace, v1alpha1.HierarchyConfigurationName
		if err := w.world.Admin().Delete(ctx, report); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("the admin deletes the report in %s: %w", namespace, err)
		}
	}
	return nil
}

// deleteNamespaces deletes alice's sub-namespaces and the one that moved, and waits until they are gone: then the tenant's limit has room
// again.
func (w *work) deleteNamespaces(ctx context.Context) error {
	all := atFirst + w.steps + 1
	for i := range all {
		if err := w.world.As("alice").Delete(ctx, build.SubNamespace(tenant, w.child(i))); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("alice deletes a SubNamespace: %w", err)
		}
	}
	if err := w.world.Admin().Delete(ctx, build.Namespace(w.moving())); err != nil {
		return fmt.Errorf("the admin deletes a namespace: %w", err)
	}
	return w.waitUntil(ctx, 2*soon, "the end of the namespaces", func(ctx context.Context) error {
		namespaces := &corev1.NamespaceList{}
		if err := w.world.Admin().List(ctx, namespaces); err != nil {
			return fmt.Errorf("listing namespaces: %w", err)
		}
		for _, namespace := range namespaces.Items {
			if strings.HasPrefix(namespace.Name, w.stem+"-") {
				return fmt.Errorf("namespace %s is still there", namespace.Name)
			}
		}
		return nil
	})
}

// distribute begins a ResourceDistribution to the tenant's tree, if its kind is served: early versions left its CRD out, so that it comes
// with the upgrade.
func (w *work) distribute(ctx context.Context) error {
	_, stderr, code := w.world.KubectlWith(ctx, controlplane.Admin, fmt.Sprintf(`apiVersion: tenancy.warren.dev/v1alpha1
kind: ResourceDistribution
metadata: {name: %[1]s}
spec:
  resource: {apiVersion: v1, kind: Secret, metadata: {name: %[1]s}, stringData: {key: everywhere}}
  targets: {trees: [%[2]s]}
`, w.distributed(), tenant), "create", "--filename=-")
	if w.distributes = code == 0; w.distributes || strings.Contains(stderr, "no matches for kind") {
		return nil
	}
	return fmt.Errorf("the admin creates a ResourceDistribution: %s", stderr)
}

// checkDone returns an error if a part of the work is not finished.
func (w *work) checkDone(ctx context.Context) error {
	if err := w.move(ctx, tenant); err != nil {
		return err
	}
	last := fmt.Sprint(w.steps)
	for i := range atFirst + w.steps + 1 {
		if i == atFirst { // steps count from one
			continue
		}
		deleted := i > atFirst && (i-atFirst)%2 == 1 && i < atFirst+w.steps
		if deleted {
			var namespace corev1.Namespace
			if err := w.world.Admin().Get(ctx, client.ObjectKey{Name: w.child(i)}, &namespace); !apierrors.IsNotFound(err) {
				return errors.Join(err, fmt.Errorf("namespace %s is still there, though its SubNamespace was deleted", w.child(i)))
			}
			continue
		}
		if err := errors.Join(w.checkSecret(ctx, w.child(i), w.stem, "first"), w.checkSecret(ctx, w.child(i), w.changing(), last)); err != nil {
			return err
		}
	}
	return errors.Join(w.checkSecret(ctx, w.moving(), w.changing(), last),
		w.checkSecret(ctx, w.child(0), w.distributed(), "everywhere"), w.checkSecret(ctx, w.child(1), w.distributed(), "everywhere"))
}

func (w *work) checkSecret(ctx context.Context, namespace, name, value string) error {
	var secret corev1.Secret
	if err := w.world.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
		return err
	}
	if got := string(secret.Data["key"]); got != value {
		return fmt.Errorf("secret %s/%s says %q: must be %q", namespace, name, got, value)
	}
	return nil
}
