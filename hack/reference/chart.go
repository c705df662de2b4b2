package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// chartPage lists the values of the Helm chart: config/chart/values.yaml has their defaults and what they mean.
func chartPage(context.Context) (string, error) {
	root, err := devcluster.Root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "chart", "values.yaml"))
	if err != nil {
		return "", fmt.Errorf("reading the chart's values: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("reading the chart's values: %w", err)
	}
	p := newPage("Values of the Helm chart", "config/chart/values.yaml", "For cluster admins who [install the chart](../guides/helm.md). "+
		"Helm checks each value before it changes anything: types, words, bounds and unknown keys, also below `controller.config`.")
	sections := document.Content[0].Content
	for i := 0; i < len(sections); i += 2 {
		about, whole := commentOf(sections[i]), isWhole(sections[i], sections[i+1])
		p.line("\n## %s", sections[i].Value)
		if about != "" && !whole {
			p.line("%s\n", about)
		}
		p.table("value", "default", "means")
		if whole {
			p.row(code(sections[i].Value), code(textOf(sections[i+1])), about)
			continue
		}
		if err := p.listValues(sections[i].Value, sections[i+1]); err != nil {
			return "", err
		}
	}
	return p.String(), nil
}

// wholeValues are mappings that are one value: their keys are Kubernetes' own.
var wholeValues = []string{"resources", "hookResources", "podSecurityContext", "securityContext"}

// isWhole reports whether a key's value is one value, and no section of values.
func isWhole(key, value *yaml.Node) bool {
	return value.Kind != yaml.MappingNode || len(value.Content) == 0 || slices.Contains(wholeValues, key.Value)
}

// listValues adds a row for each value below a key.
func (p *page) listValues(path string, section *yaml.Node) error {
	for i := 0; i < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		name := path + "." + key.Value
		if !isWhole(key, value) {
			if err := p.listValues(name, value); err != nil {
				return err
			}
			continue
		}
		about := commentOf(key)
		if about == "" {
			return fmt.Errorf("%s has no comment in the chart's values", name)
		}
		p.row(code(name), code(textOf(value)), about)
	}
	return nil
}

func commentOf(key *yaml.Node) string {
	var lines []string
	for line := range strings.Lines(key.HeadComment) {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(lines, " ")
}

// textOf is a value on one line; a list with entries is described in the text.
func textOf(value *yaml.Node) string {
	switch {
	case value.Kind == yaml.ScalarNode && value.Value == "":
		return `""`
	case value.Kind == yaml.ScalarNode:
		return value.Value
	case value.Kind == yaml.SequenceNode && len(value.Content) > 0:
		return "[…]"
	case value.Kind == yaml.SequenceNode:
		return "[]"
	case len(value.Content) == 0:
		return "{}"
	}
	var fields []string
	for i := 0; i < len(value.Content); i += 2 {
		fields = append(fields, value.Content[i].Value+": "+textOf(value.Content[i+1]))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
