package rolevetting

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// List is what somebody has looked at: all rights that a ClusterRole granted on one version of Kubernetes.
type List struct {
	// Kubernetes is the version of the API server that the list was written from, such as v1.36.3.
	Kubernetes string `yaml:"kubernetes"`
	// Role is the name of the ClusterRole.
	Role     string `yaml:"role"`
	Reviewed Review `yaml:"reviewed"`
	// Contributors are the ClusterRoles that were aggregated into it, sorted.
	Contributors []string `yaml:"contributors"`
	Rules        []Right  `yaml:"rules"`
	// APIResources are all that the server had, as resource.group, sorted: whether a right is new or its resource is.
	APIResources []string `yaml:"apiResources"`
}

// Review says when a list was looked at, as 2026-11-20, and with what outcome.
type Review struct {
	Date string `yaml:"date"`
	Note string `yaml:"note"`
}

// Parse reads a list. A key that it doesn't know is an error.
func Parse(data []byte) (*List, error) {
	list := &List{}
	from := yaml.NewDecoder(bytes.NewReader(data))
	from.KnownFields(true)
	if err := from.Decode(list); err != nil {
		return nil, fmt.Errorf("reading a vetted list: %w", err)
	}
	return list, nil
}

// Bytes is the list as a file, one right a line, so that a change of one is a change of a line.
func (l *List) Bytes() ([]byte, error) {
	var text bytes.Buffer
	to := yaml.NewEncoder(&text)
	to.SetIndent(2)
	to.CompactSeqIndent()
	if err := to.Encode(l); err != nil {
		return nil, fmt.Errorf("writing a vetted list: %w", err)
	}
	return text.Bytes(), to.Close()
}

// MarshalYAML puts a right on one line.
func (r Right) MarshalYAML() (any, error) {
	type plain Right // without this method
	line := &yaml.Node{}
	err := line.Encode(plain(r))
	line.Style = yaml.FlowStyle
	return line, err
}

// Agrees says whether two lists say the same of the same minor version, whoever reviewed them: then there is nothing to review.
func (l *List) Agrees(other *List) bool {
	a, b := *l, *other
	a.Reviewed, b.Reviewed = Review{}, Review{}
	a.Kubernetes, b.Kubernetes = "", "" // patch releases differ
	return reflect.DeepEqual(a, b)
}
