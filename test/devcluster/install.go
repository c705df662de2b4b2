package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// Manifests are the objects of a kustomization.
type Manifests []*unstructured.Unstructured

// Render builds a kustomization of the clone, such as config/overlays/standard.
func Render(dir string) (Manifests, error) {
	if !filepath.IsAbs(dir) {
		root, err := Root()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, dir)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("rendering manifests: %w", err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	var manifests Manifests
	for _, r := range rendered.Resources() {
		object := &unstructured.Unstructured{}
		text, err := r.MarshalJSON()
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", dir, err)
		}
		manifests = append(manifests, object)
	}
	return manifests, nil
}

// RenderWith builds a kustomization of the clone with components, in this order.
func RenderWith(overlay string, components ...string) (Manifests, error) {
	if len(components) == 0 {
		return Render(overlay)
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	parent := filepath.Join(root, ".dev") // git ignores it; kustomize wants paths that are relative
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", overlay, err)
	}
	dir, err := os.MkdirTemp(parent, "render.")
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", overlay, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var text strings.Builder
	text.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- ../../" + overlay + "\ncomponents:\n")
	for _, c := range components {
		text.WriteString("- ../../" + c + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o644); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", overlay, err)
	}
	return Render(dir)
}

// Definitions returns the CRDs and Namespaces, which all other objects need.
func (m Manifests) Definitions() Manifests {
	return m.where(func(u *unstructured.Unstructured) bool { return isDefinition(u) })
}

// Rest returns all manifests except CRDs and Namespaces, and except those that need nodes.
func (m Manifests) Rest() Manifests {
	return m.where(func(u *unstructured.Unstructured) bool { return !isDefinition(u) && !needsNodes(u) })
}

// Configuration returns the operator's configuration file as the manifests deploy it, empty if they deploy none.
func (m Manifests) Configuration() string {
	for _, u := range m {
		if u.GetKind() == "ConfigMap" && strings.HasPrefix(u.GetName(), "warren-config-") {
			text, _, _ := unstructured.NestedString(u.Object, "data", "config.yaml")
			return text
		}
	}
	return ""
}

func (m Manifests) where(keep func(*unstructured.Unstructured) bool) Manifests {
	var kept Manifests
	for _, u := range m {
		if keep(u) {
			kept = append(kept, u)
		}
	}
	return kept
}

func isDefinition(u *unstructured.Unstructured) bool {
	return u.GetKind() == "CustomResourceDefinition" || u.GetKind() == "Namespace"
}

func needsNodes(u *unstructured.Unstructured) bool {
	if u.GroupVersionKind().Group == "cert-manager.io" { // cert-manager runs on nodes, and brings these kinds
		return true
	}
	switch u.GetKind() {
	case "Deployment", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PodMonitor", "PrometheusRule":
		return true
	case "Service": // an ExternalName Service leads to a process on loopback, so it is kept
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
		return kind != "ExternalName"
	}
	return false
}

// Apply applies manifests in their order by server-side apply, and waits until the CRDs among them are served.
func Apply(ctx context.Context, admin *rest.Config, manifests Manifests) error {
	c, err := client.New(admin, client.Options{Scheme: Scheme()})
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	for _, u := range manifests {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()),
			client.FieldOwner("warren-test"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	for _, u := range manifests {
		if u.GetKind() == "CustomResourceDefinition" {
			if err := waitForDefinitions(ctx, c, u.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitForAggregation waits until the controller manager has aggregated Warren's rules into ClusterRoles such as admin and warren-kinds.
// Without controllers that never happens, and it must not be called.
func waitForAggregation(ctx context.Context, c client.Client, manifests Manifests) error {
	for _, u := range manifests {
		for label := range u.GetLabels() {
			target, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
			if label == v1alpha1.Domain+"/aggregate-to-kinds" {
				target, ok = "warren-kinds", true
			}
			if !ok || u.GetKind() != "ClusterRole" {
				continue
			}
			if err := waitForRules(ctx, c, target, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// patience bounds each wait for what was installed: see process.readyTimeout.
const patience = 3 * time.Minute

// waitForRules waits until the target has every rule of the role.
func waitForRules(ctx context.Context, c client.Client, target string, role *unstructured.Unstructured) error {
	from := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, from); err != nil {
		return fmt.Errorf("reading ClusterRole %s: %w", role.GetName(), err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		to := &rbacv1.ClusterRole{}
		if err := c.Get(ctx, client.ObjectKey{Name: target}, to); err != nil {
			return false, nil //nolint:nilerr // the wait ends with a timeout
		}
		for _, rule := range from.Rules {
			if !slices.ContainsFunc(to.Rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) }) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until ClusterRole %s has the rules of %s: %w", target, role.GetName(), err)
	}
	return nil
}

func waitForDefinitions(ctx context.Context, c client.Client, name string) error {
	last := errors.New("no condition Established")
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			last = err
			return false, nil //nolint:nilerr // the wait ends with the last problem
		}
		for _, condition := range crd.Status.Conditions {
			switch {
			case condition.Status == apiextensionsv1.ConditionTrue && condition.Type == apiextensionsv1.Established:
				return true, nil
			case condition.Status == apiextensionsv1.ConditionFalse:
				last = fmt.Errorf("%s: %s", condition.Reason, condition.Message)
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CRD %s: %w (%w)", name, err, last)
	}
	return nil
}
