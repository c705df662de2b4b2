// Package billing is `kubectl warren billing`: queries of the billing ledger, and corrections. It runs `manager billing` in the
// exporter's pod, so that the plugin needs no database driver and the user no password. The right to exec into that pod is the
// right to query.
package billing

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// subcommand is a subcommand of `manager billing`. The manager, not the plugin, checks its words and flags.
type subcommand struct {
	use, short, long, example string
	flags                     func(*cobra.Command)
}

var subcommands = []subcommand{
	{use: "status", short: "Show the runs of exporters, and until when the ledger is complete"},
	{use: "history TENANT", short: "Show what was billed to a tenant, and when"},
	{use: "at TIME", short: "Show who held which namespace at an instant",
		long: "Show who held which namespace at an instant: a day as 2026-03-01, in UTC, an instant as 2026-03-01T09:00:00Z, or now."},
	{use: "export", short: "Print every period of this cluster", example: "  kubectl warren billing export -o csv > periods.csv"},
	{use: "correct TENANT", short: "Append a correction of what was billed",
		long: "Append a correction of what was billed, with its author and reason. No row is ever changed. It ends at --until, or now:\n" +
			"what holds from now on is spec.billing of the LNamespace.",
		example: "  kubectl warren billing correct payments --cost-center 4711 --from 2026-03-01 --until 2026-03-20 --author ann@example.com --reason INV-7",
		flags: func(cmd *cobra.Command) {
			for name, usage := range map[string]string{"cost-center": "What should have paid", "owner": "Who should have been asked",
				"from": "From when on: a day or an instant", "until": "Until when; now where it is left out", "author": "Who corrects", "reason": "Why"} {
				cmd.Flags().String(name, "", usage)
			}
		}},
	{use: "ddl", short: "Print the SQL that an administrator runs where the exporter only verifies the schema"},
	{use: "reconcile", short: "Compare cluster and ledger once, and append what is missing",
		long:  "Compare cluster and ledger once, and append what is missing. The exporter does so by itself, at its start and every resyncInterval.",
		flags: func(cmd *cobra.Command) { cmd.Flags().Bool("dry-run", false, "Print what differs, and write nothing") }},
}

// Commands is the group of commands "billing …".
func Commands(streams genericiooptions.IOStreams) *cobra.Command {
	group := &cobra.Command{Use: "billing", Short: "Ask the ledger who owned which namespace, when, and who paid"}
	for _, s := range subcommands {
		group.AddCommand(s.command(streams))
	}
	return group
}

func (s subcommand) command(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long, Example: s.example, Args: s.checkWords,
		ValidArgsFunction: cobra.NoFileCompletions}
	cmd.Flags().StringP("output", "o", "table", "Output format: table, csv or json")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "csv", "json"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was just added
	}
	if s.flags != nil {
		s.flags(cmd)
	}
	var at place
	cmd.Flags().StringVar(&at.namespace, namespaceFlag, "warren-system", "Namespace of the exporter")
	cmd.Flags().StringVar(&at.config, configFlag, "", "Ask beside the ledger: run the program manager here, with this configuration file")
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		path, args, err := at.command(cmd, question(cmd, at.namespace, words))
		if err != nil {
			return err
		}
		return ask(cmd.Context(), path, args, streams)
	}
	return cmd
}

// Flags that say where the query runs.
const (
	namespaceFlag = "operator-namespace"
	configFlag    = "config"
)

// checkWords lets a command take as many words as its usage names.
func (s subcommand) checkWords(cmd *cobra.Command, words []string) error {
	_, takes, _ := strings.Cut(s.use, " ")
	if len(words) == len(strings.Fields(takes)) {
		return nil
	}
	if takes == "" {
		return fmt.Errorf("%s takes no words, not %q: leave them out", cmd.CommandPath(), strings.Join(words, " "))
	}
	return fmt.Errorf("name one %s, not %d: %s %s", takes, len(words), cmd.CommandPath(), takes)
}

// question returns the arguments for `manager billing`: the subcommand, the flags as they were given, and the word, which may begin
// with a hyphen.
func question(cmd *cobra.Command, namespace string, words []string) []string {
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
	if cmd.Name() == "reconcile" {
		asked = append(asked, "--"+namespaceFlag+"="+namespace)
	}
	if len(words) > 0 {
		asked = append(append(asked, "--"), words...)
	}
	return asked
}
