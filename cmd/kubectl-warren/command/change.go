package command

import (
	"bytes"

	"github.com/spf13/cobra"
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

// rehearsed says that nothing is to be sent.
func (c change) rehearsed() bool { return c.dryRun.value == dryRunClient }

// client changes the cluster, or only lets the API server judge.
func (c change) client(api client.Client) client.Client {
	if c.dryRun.value == dryRunServer {
		return client.NewDryRunClient(api)
	}
	return api
}

// printDone prints what was done to an object, which knows its kind, or the object.
func (p *plugin) printDone(object client.Object, c change, operation string) error {
	switch c.dryRun.value {
	case dryRunClient:
		operation += " (dry run)"
	case dryRunServer:
		operation += " (server dry run)"
	}
	var text bytes.Buffer
	var err error
	switch format := c.output.value; format {
	case outputJSON, outputYAML:
		object.SetManagedFields(nil)
		err = writeAs(&text, format, object)
	default:
		err = (&printers.NamePrinter{ShortOutput: format == outputName, Operation: operation}).PrintObj(object, &text)
	}
	if err == nil {
		_, err = text.WriteTo(p.streams.Out)
	}
	return err
}
