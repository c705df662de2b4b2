// Package questions has the commands about the ledger, with their words, flags and helps. `manager billing` answers
// them, and `kubectl warren billing` passes them on.
package questions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// formats are the output formats of an answer; the first is the default.
var formats = []string{"table", "csv", "json"}

// FromFlag names the ledger that copy reads.
const FromFlag = "from"

// WriteFlag allows the statement of sql to change the ledger.
const WriteFlag = "write"

// Commands returns the group "billing". run carries out each of its commands. A command takes exactly as many words as
// its usage names.
func Commands(run func(cmd *cobra.Command, words []string) error) *cobra.Command {
	group := &cobra.Command{Use: "billing", Short: "Ask the ledger who owned which namespace, when, and who paid"}
	for _, cmd := range []*cobra.Command{
		{Use: "status", Short: "Show the runs of exporters, and until when the ledger is complete",
			Example: "  kubectl warren billing status"},
		{Use: "sql STATEMENT", Short: "Run one SQL statement on the ledger, and print its answer",
			Long: "Run one SQL statement on the ledger, with the exporter's account, and print its answer. The guide to billing has the " +
				"questions of finance\nin SQL, and the statement that corrects what was billed. The database refuses a statement that would " +
				"change something,\nunless you add --write.",
			Example: "  kubectl warren billing sql 'SELECT * FROM tenant_billing_periods WHERE valid_to IS NULL' -o csv > now.csv"},
		{Use: "ddl", Short: "Print the SQL that an administrator runs where the exporter only verifies the schema",
			Example: "  kubectl warren billing ddl > ledger.sql"},
		{Use: "copy", Short: "Copy all rows of another ledger to this one, of any driver",
			Long: "Copy all rows and runs of another ledger, of any driver, to the ledger of the configuration. Rows that are there already stay, " +
				"so the command may\nbe repeated. It refuses a ledger with other rows of the same cluster, and compares both ledgers at the end. " +
				"No exporter may write meanwhile;\nthe guide to billing has the steps.",
			Example: "  kubectl warren billing copy --from billing.db --config new.yaml"},
	} {
		if cmd.Name() == "copy" {
			cmd.Flags().String(FromFlag, "", "The ledger to copy from: a file of SQLite, or a configuration file that names the ledger")
		}
		if cmd.Name() == "sql" {
			cmd.Flags().Bool(WriteFlag, false, "The statement may change the ledger; without this flag, the database refuses that")
		}
		cmd.Args, cmd.RunE, cmd.ValidArgsFunction = checkWords, run, cobra.NoFileCompletions
		cmd.Flags().StringP("output", "o", formats[0], "Output format: table, csv or json")
		if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag was just added
		}
		group.AddCommand(cmd)
	}
	return group
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
