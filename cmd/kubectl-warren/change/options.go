// Package change is the common part of all commands that change the cluster: --dry-run, changes of a Namespace's labels
// or of a HierarchyConfiguration, and the printing of what was done.
package change

import (
	"bytes"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// Options are the flags of a command that changes something.
type Options struct{ dryRun, output *invocation.Choice }

// AddFlags adds the flags --dry-run and --output to a command that changes something, and returns their values.
func AddFlags(cmd *cobra.Command) Options {
	return Options{
		invocation.AddChoice(cmd, "dry-run", "", dryRunNone, "client: only print what would be done; server: send it, but don't store it",
			dryRunNone, dryRunClient, dryRunServer),
		invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML, invocation.OutputName),
	}
}

// IsRehearsed reports whether no change is sent to the API server, as with --dry-run=client.
func (c Options) IsRehearsed() bool { return c.dryRun.Value == dryRunClient }

// PrintsObjects reports whether the output is an object in a format for programs, and not a line for people.
func (c Options) PrintsObjects() bool { return c.output.Value != "" }

// IsStored reports whether the API server stores what is sent, so that the operator acts on it.
func (c Options) IsStored() bool { return c.dryRun.Value == dryRunNone }

// ClientFor returns api, or with --dry-run=server a client whose writes the API server validates and doesn't store.
func (c Options) ClientFor(api client.Client) client.Client {
	if c.dryRun.Value == dryRunServer {
		return client.NewDryRunClient(api)
	}
	return api
}

// ManifestOf returns one of Warren's objects as a manifest for a file: without its status, and without empty optional
// fields.
func ManifestOf(object client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, err
}

// DescribeDone returns the operation, marked if it was a dry run.
func (c Options) DescribeDone(operation string) string {
	switch c.dryRun.Value {
	case dryRunClient:
		operation += " (dry run)"
	case dryRunServer:
		operation += " (server dry run)"
	}
	return operation
}

// PrintDone prints what was done to an object or, with --output, the object or its name. The object's kind must be set.
func PrintDone(inv *invocation.Invocation, object client.Object, c Options, operation string) error {
	var text bytes.Buffer
	var err error
	switch format := c.output.Value; format {
	case invocation.OutputJSON, invocation.OutputYAML:
		object.SetManagedFields(nil)
		err = invocation.WriteAs(&text, format, object)
	default:
		err = (&printers.NamePrinter{ShortOutput: format == invocation.OutputName, Operation: c.DescribeDone(operation)}).PrintObj(object, &text)
	}
	if err == nil {
		_, err = text.WriteTo(inv.Streams.Out)
	}
	return err
}
