package devcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// Every World starts from etcd's data of a furnished cluster: one that has the manifests, and in which the controllers have done their
// part. Such data are made once for each set of manifests and each version of Kubernetes, and stay in the cache folder. A start from them
// takes a third of the time: nothing is applied, and an API server enforces the policies that it finds in etcd from its first request on.

// unusedFor is how long data stay that no World starts from.
const unusedFor = 24 * time.Hour

// furnishedData returns the folder of etcd's data, and makes it if it is missing. Only one process makes it; others wait.
func (o Options) furnishedData(ctx context.Context, manifests Manifests) (string, error) {
	root, err := cache.Root()
	if err != nil {
		return "", err
	}
	key, err := o.dataKey(manifests)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(root), "furnished", key)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	lock := flock.New(dir + ".lock")
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", fmt.Errorf("waiting for a furnished cluster: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err == nil {
		return dir, nil
	}
	removeUnused(filepath.Dir(dir))
	if err := o.makeFurnishedData(ctx, manifests, dir); err != nil {
		return "", fmt.Errorf("furnishing a cluster: %w", err)
	}
	return dir, nil
}

// dataKey is a hash of all that shapes etcd's data.
func (o Options) dataKey(manifests Manifests) (string, error) {
	binaries, err := cache.Dir(o.ControlPlane.Version)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	shaped := []any{"layout 1", binaries, o.ControlPlane.EmulatedVersion, o.ControlPlane.WithoutControllers, manifests}
	err = json.NewEncoder(sum).Encode(shaped)
	return hex.EncodeToString(sum.Sum(nil))[:16], err
}

// removeUnused removes data that no World has started from for long. Locks stay: another process may hold one. It ignores errors, because
// another process may do the same.
func removeUnused(root string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.IsDir() && time.Since(info.ModTime()) > unusedFor {
			_ = os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
}

// makeFurnishedData starts a cluster, applies the manifests, and keeps etcd's data.
func (o Options) makeFurnishedData(ctx context.Context, manifests Manifests, dir string) error {
	making := dir + ".making"
	if err := os.RemoveAll(making); err != nil { // of a process that was killed
		return err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Dir: making, Version: o.ControlPlane.Version, EmulatedVersion: o.ControlPlane.EmulatedVersion,
		WithoutControllers: o.ControlPlane.WithoutControllers,
		BeforeControllers: func(cp *controlplane.ControlPlane) error {
			return Apply(ctx, cp.Config(controlplane.Admin), manifests.Definitions())
		},
	})
	if err != nil {
		return err
	}
	if err := applyAndSettle(ctx, cp, manifests.Rest()); err != nil {
		return errors.Join(err, cp.Stop())
	}
	return cp.StopAndKeep(dir)
}

// applyAndSettle applies manifests, and waits until the controllers have aggregated roles and checked the policies.
func applyAndSettle(ctx context.Context, cp *controlplane.ControlPlane, rest Manifests) error {
	if err := Apply(ctx, cp.Config(controlplane.Admin), rest); err != nil || cp.Controllers == nil {
		return err
	}
	admin, err := client.New(cp.Config(controlplane.Admin), client.Options{Scheme: Scheme()})
	if err != nil {
		return err
	}
	if err := waitForAggregation(ctx, admin, rest); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		policies := &admissionv1.ValidatingAdmissionPolicyList{}
		if err := admin.List(ctx, policies); err != nil {
			return false, err
		}
		for _, p := range policies.Items {
			if p.Status.ObservedGeneration != p.Generation {
				return false, nil
			}
		}
		return true, nil
	})
}

// waitUntilServed waits until discovery has the groups of all CRDs among the manifests.
func waitUntilServed(ctx context.Context, cp *controlplane.ControlPlane, manifests Manifests) error {
	d, err := discovery.NewDiscoveryClientForConfig(cp.Config(controlplane.Admin))
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	awaited := sets.New[string]()
	for _, u := range manifests {
		if u.GetKind() == "CustomResourceDefinition" {
			plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
			awaited.Insert(plural)
		}
	}
	var served sets.Set[string]
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, lists, err := d.ServerGroupsAndResources()
		served = sets.New[string]()
		for _, list := range lists {
			for _, resource := range list.APIResources {
				served.Insert(resource.Name)
			}
		}
		return err == nil && served.IsSuperset(awaited), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %v are served: %w", sets.List(awaited.Difference(served)), err)
	}
	return nil
}
