package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// document is what doctor prints as JSON or YAML.
type document struct {
	invocation.Document
	Checks []Check `json:"checks"`
}

// Command is the command "doctor".
func Command(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this cluster is protected, and that nothing hangs",
		Long: "Check what protects this cluster, and whether anything hangs: version, configuration, CRDs, policies, pod security, APIs that\n" +
			"do not answer, webhook, groups of sudoers, number of ClusterRoleBindings, protected namespaces, what the operator can see,\n" +
			"how far modes All and Remove of the propagated kinds have come, sources, billing.\n" +
			"The last line sums up. It changes nothing. The exit status is 1 if a check ends in an error; a check that you have no right to\n" +
			"run is a warning.",
		Example:           "  kubectl warren doctor\n  kubectl warren doctor -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := invocation.AddFormat(cmd, "Output format")
	namespace := invocation.AddOperatorNamespace(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return examineCluster(cmd.Context(), inv, *namespace, output.Value)
	}
	return cmd
}

// examineCluster prints all checks, and then returns an error if any of them failed.
func examineCluster(ctx context.Context, inv *invocation.Invocation, namespace, format string) error {
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	// Without this request, a server that isn't there would fail every check in the same way.
	if _, err := inv.ServerVersion(); err != nil {
		return err
	}
	served, err := inv.ServedResources()
	if err != nil {
		return err
	}
	propagable, err := inv.PropagableKinds()
	if err != nil {
		return err
	}
	copies, err := inv.ConnectDiscovering()
	if err != nil {
		return err
	}
	checks := Patient{API: api, Copies: copies, Served: served, Propagable: propagable, Server: inv.ServerVersion,
		Metrics: inv.ServerMetrics, Namespace: namespace}.Examine(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var text bytes.Buffer
	if format == "" {
		err = writeChecks(&text, checks)
	} else {
		err = invocation.WriteAs(&text, format, document{invocation.DocumentOf("Diagnosis"), checks})
	}
	if err != nil {
		return err
	}
	printed := text.Bytes()
	if format == "" {
		printed = append(colourChecks(printed, terminal.Is(inv.Streams.Out)), summariseChecks(checks)...)
	}
	if _, err := inv.Streams.Out.Write(printed); err != nil {
		return err
	}
	failed := 0
	for _, c := range checks {
		if c.Status == Error {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

// writeChecks writes one line for each check.
func writeChecks(out io.Writer, checks []Check) error {
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
