// Package setup is the commands for a user who installs Warren: the operator's configuration, the vetting of users'
// rights, versions.
package setup

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// ConfigCommands is the group of commands "config …".
func ConfigCommands(inv *invocation.Invocation) *cobra.Command {
	group := &cobra.Command{Use: "config",
		Short: "Print the operator's configuration, check a configuration file, and show what the operator would write under it"}
	group.AddCommand(validateCommand(inv), viewCommand(inv), diffCommand(inv))
	return group
}

// validateCommand is the command "config validate FILE".
func validateCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a configuration file as the operator would",
		Long: "Check a configuration file as the operator would, without a cluster: it is not checked whether the kinds in it are served.\n" +
			"All problems are printed, one line each. FILE can be - for standard input.",
		Example: "  kubectl warren config validate config.yaml\n  kubectl warren config validate config.yaml -o yaml   # with all defaults " +
			"filled in",
		Args: invocation.ExactlyAsUsage("one file"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	output := invocation.AddFormat(cmd, "Print the whole configuration, with its defaults")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		data, err := inv.ReadFile(args[0])
		if err != nil {
			return err
		}
		return printValidity(inv, args[0], data, output.Value, args[0]+" is valid\n")
	}
	return cmd
}

// printValidity checks the content of a configuration file. If it is valid, printValidity prints text; with a format,
// it prints the whole configuration with its defaults instead. If it is not valid, the problems are the error.
func printValidity(inv *invocation.Invocation, name string, data []byte, format, text string) error {
	c, err := configfile.Parse(name, data)
	if err != nil {
		return invocation.Problems(strings.Split(err.Error(), "\n"))
	}
	for _, warning := range configfile.Warnings(c) {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: %s: %s\n", name, warning)
	}
	if format != "" {
		return invocation.WriteAs(inv.Streams.Out, format, c)
	}
	_, err = io.WriteString(inv.Streams.Out, text)
	return err
}

// viewCommand is the command "config view".
func viewCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Print the configuration file in force",
		Long: "Print the configuration file in force, which the operator records in ConfigMap " + v1alpha1.AcceptedConfigName + ".\n" +
			"Without -o, print the file as it is; with -o, the whole configuration with its defaults.",
		Example:           "  kubectl warren config view\n  kubectl warren config view -o yaml",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	namespace := invocation.AddOperatorNamespace(cmd)
	output := invocation.AddFormat(cmd, "Print the whole configuration, with its defaults")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := inv.Connect()
		if err != nil {
			return err
		}
		name, text, err := gather.ReadStoredConfig(cmd.Context(), api, *namespace)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("the operator has recorded no configuration file in %s: it hasn't run yet, or runs in another namespace: name that "+
				"with --operator-namespace", name)
		case err != nil:
			return err
		case output.Value == "": // as it is, valid or not
			_, err = io.WriteString(inv.Streams.Out, text)
			return err
		}
		return printValidity(inv, name, []byte(text), output.Value, "")
	}
	return change.ForAdmins(cmd)
}
