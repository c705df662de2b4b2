package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// readDocument returns the one document of a file, YAML or JSON. Documents without content, such as one after a trailing ---, don't
// count. It may return problems together with a document. If it returns no document, the problems explain why.
func readDocument(data []byte) (*yaml.Node, []problem) {
	var document *yaml.Node
	var problems []problem
	for stream := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var next yaml.Node
		switch err := stream.Decode(&next); {
		case errors.Is(err, io.EOF) && document == nil:
			return nil, []problem{{text: fmt.Sprintf("the file is empty: it must say at least apiVersion: %s and kind: %s", config.APIVersion,
				config.Kind)}}
		case errors.Is(err, io.EOF):
			return document, problems
		case err != nil:
			return document, append(problems, problem{text: "neither YAML nor JSON: " + strings.TrimPrefix(err.Error(), "yaml: ")})
		}
		content := next.Content[0]
		switch {
		case isNullNode(content):
		case document == nil && content.Kind != yaml.MappingNode:
			return nil, []problem{{text: "the file must be a mapping, is " + describeYAMLNode(content)}}
		case document == nil:
			document = content
		default:
			problems = append(problems, problem{text: fmt.Sprintf("line %d: a second document: the file must hold one", content.Line)})
		}
	}
}

func resolveYAMLAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNullNode(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func describeYAMLNode(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNullNode(n):
		return "null"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("the string %q", n.Value)
	case n.ShortTag() == "!!int", n.ShortTag() == "!!float":
		return "the number " + n.Value
	}
	return n.Value
}
