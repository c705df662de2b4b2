// Package billing is `kubectl warren billing`: the state of the billing ledger, and SQL on it. It runs `manager
// billing` in the exporter's pod, so that the plugin needs no database driver and the user no password; with --config,
// it runs the program on this machine. The right to exec into that pod is the right to query.
package billing

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/internal/billing/questions"
)

// Commands is the group of commands "billing …". The manager, not the plugin, checks their flags.
func Commands(streams genericiooptions.IOStreams) *cobra.Command {
	var at place
	group := questions.Commands(func(cmd *cobra.Command, words []string) error {
		path, args, err := at.buildCommand(cmd, buildQuestion(cmd, words))
		if err != nil {
			return err
		}
		return runProgram(cmd.Context(), path, args, streams)
	})
	for _, cmd := range group.Commands() {
		cmd.Flags().StringVar(&at.namespace, namespaceFlag, "warren-system", "Namespace of the exporter")
		cmd.Flags().StringVar(&at.config, configFlag, "", "Read the ledger from this machine, not from the exporter's pod: "+
			"run Warren's program \"manager\" here, with this configuration file")
	}
	return group
}

// Flags that determine where the query runs.
const (
	namespaceFlag = "operator-namespace"
	configFlag    = "config"
)

// buildQuestion returns the arguments for `manager billing`: the subcommand, the flags that the user set, and then the
// positional arguments. These follow "--", because one may begin with a hyphen.
func buildQuestion(cmd *cobra.Command, words []string) []string {
	asked := []string{cmd.Name()}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed, f.Name == namespaceFlag, f.Name == configFlag:
		case f.Name == "output":
			asked = append(asked, "-o="+f.Value.String())
		default:
			asked = append(asked, "--"+f.Name+"="+f.Value.String())
		}
	})
	if len(words) > 0 {
		asked = append(append(asked, "--"), words...)
	}
	return asked
}
