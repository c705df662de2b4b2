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

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/manifests"
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

// inForce waits until the API server enforces all policies that have been applied. Once a second, the API server collects the policies and
// bindings that it has. A policy that arrives at that moment may be missing in that collection. So inForce first waits until the API server
// enforces the probe's policy, which was applied last: then all policies have arrived. Then inForce creates the probe's second binding and
// waits for it: that needs a later collection, which has all policies.
func (w *World) inForce(ctx context.Context) error {
	admin := w.Admin()
	policy, first, second := probePolicy(), probeBinding("first"), probeBinding("second")
	for _, o := range []client.Object{policy, first} {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("creating the probe of policies: %w", err)
		}
	}
	if err := w.enforces(ctx, first); err != nil {
		return err
	}
	if err := admin.Create(ctx, second); err != nil {
		return fmt.Errorf("creating the probe of policies: %w", err)
	}
	if err := w.enforces(ctx, second); err != nil {
		return err
	}
	for _, o := range []client.Object{first, second, policy} {
		if err := admin.Delete(ctx, o); err != nil {
			return fmt.Errorf("deleting the probe of policies: %w", err)
		}
	}
	return nil
}

const probe = "devcluster-probe"

// probePolicy refuses every ConfigMap that a binding of it selects.
func probePolicy() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: probe},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false"}},
		},
	}
}

func probeBinding(name string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: probe + "-" + name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        probe,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{probe: name}},
			},
		},
	}
}

// enforces waits until the API server refuses what the binding selects.
func (w *World) enforces(ctx context.Context, b *admissionv1.ValidatingAdmissionPolicyBinding) error {
	last := "none"
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		selected := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: probe, Labels: b.Spec.MatchResources.ObjectSelector.MatchLabels,
		}}
		last = fmt.Sprint(w.Admin().Create(ctx, selected, client.DryRunAll))
		return strings.Contains(last, "with binding '"+b.Name+"'"), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is in force: %w; the last answer was: %s", b.Name, err, last)
	}
	return nil
}
