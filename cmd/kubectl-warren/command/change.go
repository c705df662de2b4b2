package command

import (
	"bytes"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// change is how a command that changes something goes about it, as its flags say.
type change struct{ dryRun, output *choice }

func addChange(cmd *cobra.Command) change {
	return change{
		addChoice(cmd, "dry-run", "", dryRunNone, "client: only print what would be done; server: send it, but don't store it", dryRunNone, dryRunClient, dryRunServer),
		addChoice(cmd, "output", "o", "", "Output format", outputJSON, outputYAML, outputName),
	}
}

// isRehearsed says that nothing is to be sent.
func (c change) isRehearsed() bool { return c.dryRun.value == dryRunClient }

// isStored says that what was sent is stored, so that something comes of it.
func (c change) isStored() bool { return c.dryRun.value == dryRunNone }

// clientFor changes the cluster, or only lets the API server judge.
func (c change) clientFor(api client.Client) client.Client {
	if c.dryRun.value == dryRunServer {
		return client.NewDryRunClient(api)
	}
	return api
}

// manifestOf is an object of ours as one would write it: without status, and without the empty fields of a Go struct, so that it
// can be kept in a file.
func manifestOf(object client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, err
}

// describeDone is what was done, and whether only for show.
func (c change) describeDone(operation string) string {
	switch c.dryRun.value {
	case dryRunClient:
		operation += " (dry run)"
	case dryRunServer:
		operation += " (server dry run)"
	}
	return operation
}

// printDone prints what was done to an object, which knows its kind, or the object.
func (p *plugin) printDone(object client.Object, c change, operation string) error {
	var text bytes.Buffer
	var err error
	switch format := c.output.value; format {
	case outputJSON, outputYAML:
		object.SetManagedFields(nil)
		err = writeAs(&text, format, object)
	default:
		err = (&printers.NamePrinter{ShortOutput: format == outputName, Operation: c.describeDone(operation)}).PrintObj(object, &text)
	}
	if err == nil {
		_, err = text.WriteTo(p.streams.Out)
	}
	return err
}
