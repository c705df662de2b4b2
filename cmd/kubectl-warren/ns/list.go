package ns

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// listDocument is what ns prints as JSON or YAML.
type listDocument struct {
	invocation.Document
	Items []gather.OwnNamespace `json:"items"`
}

// listCommand is the command "ns".
func listCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "ns",
		SuggestFor: []string{"namespace", "namespaces", "list", "ls"},
		Short:      "List the namespaces in your trees, also if you may not list all namespaces of the cluster",
		Long: "List the namespaces in your trees. If you may list all namespaces of the cluster, you see every tree. Otherwise you see:\n" +
			"- the tenants that your rights name, because you are a manager or sudoer;\n" +
			"- the trees of the tenants whose lists name you, if you may list LNamespaces and read the root;\n" +
			"- the trees of the namespaces in the kubeconfig's contexts that have your cluster and user.\n" +
			"Namespaces that you may not read are named on stderr.",
		Example:           "  kubectl warren ns\n  kubectl warren ns --tenant payments -o name",
		Args:              takeNoWords,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	tenant := inv.AddTenant(cmd)
	output := invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML,
		invocation.OutputName, invocation.OutputWide)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := inv.FindOwn(cmd.Context(), *tenant)
		if err != nil {
			return err
		}
		readable, unread := []gather.OwnNamespace{}, []string{}
		for _, own := range all {
			if own.Unread && own.Parent != "" {
				unread = append(unread, own.Name)
			} else {
				readable = append(readable, own)
			}
		}
		if len(unread) > 0 {
			terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not read %s: not shown\n", strings.Join(unread, ", "))
		}
		return printOwn(inv, output.Value, readable)
	}
	return cmd
}

// takeNoWords refuses words, such as those of the group "ns" of Accurate's plugin.
func takeNoWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no %q: to show one namespace or to change it, use kubectl warren describe, set, set-type or mark",
		cmd.CommandPath(), args[0])
}

func printOwn(inv *invocation.Invocation, format string, all []gather.OwnNamespace) error {
	if format == invocation.OutputWide { // the table has no more columns
		format = ""
	}
	switch {
	case format == invocation.OutputName:
		for _, own := range all {
			if _, err := terminal.Fprintf(inv.Streams.Out, "namespace/%s\n", own.Name); err != nil {
				return err
			}
		}
		return nil
	case format == "" && len(all) == 0:
		terminal.Fprintln(inv.Streams.ErrOut, "No namespaces found.")
		return nil
	}
	return inv.PrintReport(format, ownTable(all), listDocument{invocation.DocumentOf("OwnNamespaces"), all})
}

// ownTable is a table of namespaces.
type ownTable []gather.OwnNamespace

// Write writes the table.
func (t ownTable) Write(w io.Writer) error {
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "NAME\tTENANT\tPARENT\tSTATUS")
	for _, own := range t {
		terminal.Fprintf(table, "%s\t%s\t%s\t%s\n", own.Name, tree.OrNone(own.Tenant), tree.OrNone(own.Parent), own.Phase)
	}
	return table.Flush()
}
