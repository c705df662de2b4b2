package devcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

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
