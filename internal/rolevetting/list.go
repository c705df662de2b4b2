package rolevetting

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// List is a vetted list: all rights that a ClusterRole granted on one version of Kubernetes, reviewed by somebody.
type List struct {
	// Kubernetes is the version of the API server that the list was written from, such as v1.36.3.
	Kubernetes string `yaml:"kubernetes"`
	// Role is the name of the ClusterRole.
	Role     string `yaml:"role"`
	Reviewed Review `yaml:"reviewed"`
	// Contributors are the names of the ClusterRoles that were aggregated into the role, sorted.
	Contributors []string `yaml:"contributors"`
	Rules        []Right  `yaml:"rules"`
	// APIResources are all resources of the server, as resource.group, sorted: they show whether a new right is about a new
	// resource.
	APIResources []string `yaml:"apiResources"`
}

// Review reports when a list was reviewed, as 2026-11-20, and with what outcome.
type Review struct {
	Date string `yaml:"date"`
	Note string `yaml:"note"`
}

// Parse reads a list. An unknown key is an error.
func Parse(data []byte) (*List, error) {
	list := &List{}
	from := yaml.NewDecoder(bytes.NewReader(data))
	from.KnownFields(true)
	if err := from.Decode(list); err != nil {
		return nil, fmt.Errorf("reading a vetted list: %w", err)
	}
	return list, nil
}

// Bytes returns the list as a file, with one right on each line, so that a change of a right changes one line.
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

// MarshalYAML implements yaml.Marshaler: it puts a right on one line.
func (r Right) MarshalYAML() (any, error) {
	type plain Right // the same fields without this method, which would call itself
	line := &yaml.Node{}
	err := line.Encode(plain(r))
	line.Style = yaml.FlowStyle
	return line, err
}

// Agrees reports whether two lists differ only in their reviews and versions of Kubernetes, or not at all, so that there is nothing to
// review.
func (l *List) Agrees(other *List) bool {
	a, b := *l, *other
	a.Reviewed, b.Reviewed = Review{}, Review{}
	a.Kubernetes, b.Kubernetes = "", "" // patch releases may differ
	return reflect.DeepEqual(a, b)
}
