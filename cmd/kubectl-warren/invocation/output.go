package invocation

import (
	"bytes"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/internal/text"
)

// Values of --output.
const (
	OutputJSON = "json"
	OutputYAML = "yaml"
	OutputName = "name"
	OutputWide = "wide"
)

// AddFormat gives cmd the flag --output of a command that prints text, JSON or YAML.
func AddFormat(cmd *cobra.Command, usage string) *Choice {
	return AddChoice(cmd, "output", "o", "", usage, OutputJSON, OutputYAML)
}

// WriteAs writes value as JSON or YAML.
func WriteAs(w io.Writer, format string, value any) error {
	encode := text.EncodeJSON
	if format == OutputYAML {
		encode = text.EncodeYAML
	}
	document, err := encode(value)
	if err != nil {
		return err
	}
	_, err = w.Write(document)
	return err
}

// Document is the head of what a command prints as JSON or YAML.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// DocumentOf is the head of a document of some kind.
func DocumentOf(kind string) Document { return Document{"cli.tenancy.warren.dev/v1alpha1", kind} }

// ReadFile reads a file, or standard input if name is -.
func (inv *Invocation) ReadFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(inv.Streams.In)
	}
	return os.ReadFile(name)
}

// PrintReport writes a report in its own form, or value as JSON or YAML.
func (inv *Invocation) PrintReport(format string, report interface{ Write(io.Writer) error }, value any) error {
	var out bytes.Buffer
	var err error
	if format == "" {
		err = report.Write(&out)
	} else {
		err = WriteAs(&out, format, value)
	}
	if err == nil {
		_, err = out.WriteTo(inv.Streams.Out)
	}
	return err
}
