// Package questions has the commands about the ledger, with their words, flags and helps. `manager billing` answers them, and `kubectl
// warren billing` passes them on.
package questions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// formats are the output formats of an answer; the first is the default.
var formats = []string{"table", "csv", "json"}

// Commands returns the group "billing". run carries out each of its commands. A command takes exactly as many words as its usage names.
func Commands(run func(cmd *cobra.Command, words []string) error) *cobra.Command {
	group := &cobra.Command{Use: "billing", Short: "Ask the ledger who owned which namespace, when, and who paid"}
	for _, cmd := range []*cobra.Command{
		{Use: "status", Short: "Show the runs of exporters, and until when the ledger is complete"},
		{Use: "history TENANT", Short: "Show what was billed to a tenant, and when"},
		{Use: "at TIME", Short: "Show who held which namespace at an instant",
			Long: "Show who held which namespace at an instant: a day as 2026-03-01, in UTC, an instant as 2026-03-01T09:00:00Z, or now."},
		{Use: "export", Short: "Print every period of this cluster", Example: "  kubectl warren billing export -o csv > periods.csv"},
		correct(),
		{Use: "ddl", Short: "Print the SQL that an administrator runs where the exporter only verifies the schema"},
		reconcile(),
	} {
		cmd.Args, cmd.RunE, cmd.ValidArgsFunction = checkWords, run, cobra.NoFileCompletions
		cmd.Flags().StringP("output", "o", formats[0], "Output format: table, csv or json")
		if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag was just added
		}
		group.AddCommand(cmd)
	}
	return group
}

func correct() *cobra.Command {
	cmd := &cobra.Command{Use: "correct TENANT", Short: "Append a correction of what was billed",
		Long: "Append a correction of what was billed, with its author and reason. No row is ever changed. The correction ends at --until, " +
			"or now:\nfrom now on, spec.billing of the LNamespace applies.",
		Example: "  kubectl warren billing correct payments --cost-center 4711 --from 2026-03-01 --until 2026-03-20 --author ann@example.com " +
			"--reason INV-7"}
	for name, usage := range map[string]string{
		"cost-center": "Cost center that should have paid", "owner": "Owner that should have been billed",
		"from": "Since when: a day or an instant in RFC 3339", "until": "Until when; now if it is left out",
		"author": "Author of the correction", "reason": "Reason for the correction"} {
		cmd.Flags().String(name, "", usage)
	}
	return cmd
}

func reconcile() *cobra.Command {
	cmd := &cobra.Command{Use: "reconcile", Short: "Compare cluster and ledger once, and append what is missing",
		Long: "Compare cluster and ledger once, and append what is missing. The exporter does so by itself, at its start and every " +
			"resyncInterval."}
	cmd.Flags().Bool("dry-run", false, "Print what differs, and write nothing")
	return cmd
}

// Format returns the format of the answer.
func Format(cmd *cobra.Command) (string, error) {
	format := cmd.Flag("output").Value.String()
	if !slices.Contains(formats, format) {
		return "", fmt.Errorf("-o %q: choose table, csv or json", format)
	}
	return format, nil
}

func checkWords(cmd *cobra.Command, words []string) error {
	_, takes, _ := strings.Cut(cmd.Use, " ")
	if len(words) == len(strings.Fields(takes)) {
		return nil
	}
	if takes == "" {
		return fmt.Errorf("%s takes no arguments, got %q: leave them out", cmd.CommandPath(), strings.Join(words, " "))
	}
	return fmt.Errorf("name one %s, not %d: %s %s", takes, len(words), cmd.CommandPath(), takes)
}
