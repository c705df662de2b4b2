package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// KindsOf returns the policies and the role that list the kinds of a configuration, as `manager manifests` prints them.
func KindsOf(configuration string) (Manifests, error) {
	c, err := configfile.Parse("config.yaml", []byte(configuration))
	if err != nil {
		return nil, err
	}
	var generated Manifests
	for stream := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.Print(c)), 4096); ; {
		u := &unstructured.Unstructured{}
		switch err := stream.Decode(u); {
		case errors.Is(err, io.EOF):
			return generated, nil
		case err != nil:
			return nil, fmt.Errorf("reading what manager manifests prints: %w", err)
		}
		generated = append(generated, u)
	}
}

// withKindsOf replaces the overlay's objects that list kinds by those for a configuration.
func (m Manifests) withKindsOf(configuration string) (Manifests, error) {
	generated, err := KindsOf(configuration)
	if err != nil {
		return nil, err
	}
	fitting := slices.Clone(m)
	for i, u := range m {
		for _, g := range generated {
			if g.GroupVersionKind() == u.GroupVersionKind() && g.GetName() == u.GetName() {
				fitting[i] = g
			}
		}
	}
	return fitting, nil
}

// withoutPolicies leaves out our admission policies and their bindings.
func (m Manifests) withoutPolicies() Manifests {
	return m.where(func(u *unstructured.Unstructured) bool {
		return !strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy")
	})
}

// inForce waits until the API server enforces the policies, which it reads about once a second. It sends dry-run requests that the
// policies must refuse. Policies on updates only can't be tried so; the API server reads all policies at once.
func (w *World) inForce(ctx context.Context) error {
	role := func(labels map[string]string) client.Object {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe", Labels: labels}}
	}
	namespace := func(labels map[string]string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: labels}}
	}
	for _, probe := range []struct {
		binding, user string
		object        client.Object
	}{
		{"warren-copy", controlplane.Admin, role(map[string]string{v1alpha1.LabelInheritedFrom: "x"})},
		{"warren-copy-access", controlplane.Admin, role(map[string]string{v1alpha1.LabelAccess: "x"})},
		{"warren-source-keys", controlplane.Admin, role(map[string]string{v1alpha1.LabelPropagate: "x"})},
		{"warren-namespace-shape", controlplane.Admin, namespace(map[string]string{v1alpha1.LabelType: "x"})},
		{"warren-operator-cage-rbac", controlplane.Operator, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}},
		{"warren-operator-cage-namespaces", controlplane.Operator, namespace(nil)},
		{"warren-operator-cage-objects", controlplane.Operator, role(nil)},
	} {
		last := "none"
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			last = fmt.Sprint(w.As(probe.user).Create(ctx, probe.object.DeepCopyObject().(client.Object), client.DryRunAll))
			return strings.Contains(last, "with binding '"+probe.binding+"'"), nil
		})
		if err != nil {
			return fmt.Errorf("waiting until %s is in force: %w; the last answer was: %s", probe.binding, err, last)
		}
	}
	return nil
}
