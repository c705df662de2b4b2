// Package configfile reads the operator's configuration file: decoding, defaults and validation.
//
// Load and Parse report every problem of a file together, one per line, as "FILE: path: problem". The configuration that they return is
// complete: defaults are filled in, enums hold known values, patterns compile. Other packages check what needs a cluster: whether a kind
// is served or namespaced, and whether a ClusterRole exists. So a file can be validated offline.
package configfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// Load reads, decodes, defaults and validates the file at path. Without a path it returns the defaults.
func Load(path string) (*config.OperatorConfiguration, error) {
	if path == "" {
		return Default(), nil
	}
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Read returns the content of the file at path, or an error "FILE: problem" that describes what to do.
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
func Parse(name string, data []byte) (*config.OperatorConfiguration, error) {
	document, problems := readDocument(data)
	if document == nil {
		return nil, errorOfFile(name, problems)
	}
	last := decodeDocument(document, forward)
	problems = append(problems, last.fillInAndValidate()...)
	if last.duplicates {
		// It is unknown which of two values is meant, so the problems of both are reported.
		first := decodeDocument(document, backward)
		problems = append(problems, first.fillInAndValidate()...)
	}
	if len(problems) > 0 {
		return nil, errorOfFile(name, problems)
	}
	return last.config, nil
}

// ParseRecorded decodes and defaults a file that an operator, perhaps of another version, has accepted before. It ignores the problems
// that this version finds: keys that it doesn't know, and values that it wouldn't accept. It returns nil for content that is no
// configuration file at all.
func ParseRecorded(data []byte) *config.OperatorConfiguration {
	document, _ := readDocument(data)
	if document == nil {
		return nil
	}
	d := decodeDocument(document, forward)
	d.fillInAndValidate()
	return d.config
}

// fillInAndValidate calls fillInDefaults, and returns all problems of the file.
func (d *decoding) fillInAndValidate() []problem {
	fillInDefaults(d.config)
	problems := d.problems
	for _, e := range validateConfiguration(d.config) {
		if !d.isInMistypedValue(e.Field) { // else e is about a default, not about the file's value
			problems = append(problems, problem{path: e.Field, text: e.ErrorBody()})
		}
	}
	return problems
}

// problem is a sentence about the value at path, or about the file as a whole where path is empty.
type problem struct{ path, text string }

// errorOfFile makes one error of the problems. Each problem is a line; equal lines occur once.
func errorOfFile(name string, problems []problem) error {
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
