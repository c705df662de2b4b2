package command

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/doctor"
)

// diagnosis is what doctor prints as JSON or YAML.
type diagnosis struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Checks     []doctor.Check `json:"checks"`
}

// doctorCommand is the command "doctor".
func (p *plugin) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that Warren's walls stand on this cluster",
		Long: "Check that Warren's walls stand on this cluster: version, policies, pod security, webhook, groups of sudoers, protected namespaces.\n" +
			"It changes nothing. The exit status is 1 if a check ends in an error; what you may not look at is a warning.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := addChoice(cmd, "output", "o", "", "Output format", outputJSON, outputYAML)
	namespace := addOperatorNamespace(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.examineCluster(cmd.Context(), *namespace, output.value)
	}
	return cmd
}

// examineCluster prints the checks also where some of them end in an error, which is then told too.
func (p *plugin) examineCluster(ctx context.Context, namespace, format string) error {
	api, err := p.connect()
	if err != nil {
		return err
	}
	// A server that isn't there would fail every check in the same way.
	if _, err := p.serverVersion(); err != nil {
		return err
	}
	checks := doctor.Patient{API: api, Server: p.serverVersion, Namespace: namespace}.Examine(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var text bytes.Buffer
	if format == "" {
		err = writeChecks(&text, checks)
	} else {
		err = writeAs(&text, format, diagnosis{"cli.tenancy.warren.dev/v1alpha1", "Diagnosis", checks})
	}
	if err != nil {
		return err
	}
	if _, err := text.WriteTo(p.streams.Out); err != nil {
		return err
	}
	failed := 0
	for _, c := range checks {
		if c.Status == doctor.Error {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

// writeChecks writes one line for each check.
func writeChecks(out io.Writer, checks []doctor.Check) error {
	table := printers.GetNewTabWriter(out)
	for _, c := range checks {
		message := c.Message
		if c.Advice != "" {
			message += "; " + c.Advice
		}
		terminal.Fprintf(table, "%s\t%s\t%s\n", c.Status, c.Name, message)
	}
	return table.Flush()
}
