package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Option changes how a file is loaded.
//
// +kubebuilder:object:generate=false
type Option func(*OperatorConfiguration)

// WithFeatureGates sets gates over those of the file, as the flag --feature-gates does.
func WithFeatureGates(gates map[string]bool) Option {
	return func(c *OperatorConfiguration) { maps.Copy(c.FeatureGates, gates) }
}

// Load reads, decodes, defaults and validates the file at path.
func Load(path string, options ...Option) (*OperatorConfiguration, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, options...)
}

// Read returns the content of the file at path, or an error "FILE: problem" that says what to do.
func Read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	var cause *fs.PathError
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file: create it, or leave out --config to run with the defaults", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: the file may not be read: grant this process read access to it", path)
	case errors.As(err, &cause):
		return nil, fmt.Errorf("%s: the file can't be read: %w", path, cause.Err)
	}
	return nil, fmt.Errorf("%s: the file can't be read: %w", path, err)
}

// Parse decodes, defaults and validates a file's content. The error has one line for each problem, "NAME: path: problem",
// or "NAME: problem" for what concerns the file as a whole.
func Parse(name string, data []byte, options ...Option) (*OperatorConfiguration, error) {
	document, problems := readDocument(data)
	if document == nil {
		return nil, inFile(name, problems)
	}
	c, duplicates, found := decodeAndValidate(document, lastValue, options)
	problems = append(problems, found...)
	if duplicates {
		// Nobody knows which of two values is meant: say what is wrong with each of them.
		_, _, found := decodeAndValidate(document, firstValue, options)
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return nil, inFile(name, problems)
	}
	return c, nil
}

// ParseRecorded decodes and defaults a file that an operator has accepted before, perhaps one of another version: it passes over what this
// version doesn't know, or wouldn't accept. It returns nil for what is no file at all.
func ParseRecorded(data []byte) *OperatorConfiguration {
	document, _ := readDocument(data)
	if document == nil {
		return nil
	}
	c, _, _ := decodeAndValidate(document, lastValue, nil)
	return c
}

func decodeAndValidate(document *yaml.Node, pick duplicateChoice, options []Option) (c *OperatorConfiguration, duplicates bool, problems []problem) {
	c = defaultsBeforeFile()
	c.APIVersion, c.Kind = "", ""
	d := decoder{pick: pick}
	d.document(document, c)
	for _, option := range options {
		option(c)
	}
	c.fillIn()
	problems = d.problems
	for _, e := range c.validate() {
		if !d.isMistyped(e.Field) { // its value is not the file's
			problems = append(problems, problem{path: e.Field, text: e.ErrorBody()})
		}
	}
	return c, d.duplicates, problems
}

// readDocument returns the one document of the data. Documents without content, as a trailing --- makes, don't count.
// Problems can come beside a document; without one, they say why.
func readDocument(data []byte) (*yaml.Node, []problem) {
	var document *yaml.Node
	var problems []problem
	for stream := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var next yaml.Node
		switch err := stream.Decode(&next); {
		case errors.Is(err, io.EOF) && document == nil:
			return nil, []problem{{text: fmt.Sprintf("the file is empty: it must say at least apiVersion: %s and kind: %s", APIVersion, Kind)}}
		case errors.Is(err, io.EOF):
			return document, problems
		case err != nil:
			return document, append(problems, problem{text: "neither YAML nor JSON: " + strings.TrimPrefix(err.Error(), "yaml: ")})
		}
		content := next.Content[0]
		switch {
		case isNull(content):
		case document == nil && content.Kind != yaml.MappingNode:
			return nil, []problem{{text: "the file must be a mapping, is " + describe(content)}}
		case document == nil:
			document = content
		default:
			problems = append(problems, problem{text: fmt.Sprintf("line %d: a second document: the file must hold one", content.Line)})
		}
	}
}

// problem is a sentence about the value at path, or about the file as a whole where path is empty.
type problem struct{ path, text string }

// inFile makes one error of the problems, one line each, every line once.
func inFile(name string, problems []problem) error {
	var lines []string
	for _, p := range problems {
		line := name + ": " + p.text
		if p.path != "" {
			line = name + ": " + p.path + ": " + p.text
		}
		line = strings.ReplaceAll(line, "\n", " ")
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}
