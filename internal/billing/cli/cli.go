// Package cli is the command `manager billing`: the ledger's state, its DDL, and SQL. Users run the command in the
// exporter's pod, where driver and password are.
package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
	"github.com/warren-tenancy/warren/internal/billing/questions"
)

// call is one run of a subcommand.
type call struct {
	config *config.OperatorConfiguration
	store  *billing.Store
	db     *sql.DB
	word   string
	out    io.Writer
	format string
	// write is flag --write of sql: the statement may change the ledger. Everything else only reads.
	write bool
}

var answers = map[string]func(context.Context, *call) error{"status": printStatus, "sql": runSQL}

// NewCommand returns the group of commands "manager billing".
func NewCommand() *cobra.Command {
	group := questions.Commands(runCommand)
	group.Args, group.RunE = cobra.ArbitraryArgs, refuseWords
	group.SilenceErrors, group.SilenceUsage, group.CompletionOptions.DisableDefaultCmd = true, true, true
	group.PersistentFlags().String("config", "/etc/warren/config.yaml", "The operator's configuration file")
	return group
}

// refuseWords returns the error for words that name no subcommand; it lists the subcommands.
func refuseWords(group *cobra.Command, words []string) error {
	var names []string
	for _, cmd := range group.Commands() {
		names = append(names, cmd.Name())
	}
	if len(words) > 0 {
		return fmt.Errorf("unknown subcommand %q: choose one of %s", words[0], strings.Join(names, ", "))
	}
	return fmt.Errorf("name a subcommand: %s", strings.Join(names, ", "))
}

// Run carries out `manager billing NAME [WORD] [FLAG…]`. It prints nothing but help and answers, because a program may
// read the output.
func Run(ctx context.Context, args []string, out io.Writer) error {
	group := NewCommand()
	group.SetArgs(append([]string{}, args...)) // with nil, cobra would take the arguments of the process
	group.SetOut(out)
	return group.ExecuteContext(ctx)
}

func runCommand(cmd *cobra.Command, words []string) error {
	format, err := questions.Format(cmd)
	if err != nil {
		return err
	}
	c := &call{word: strings.Join(words, ""), out: cmd.OutOrStdout(), format: format}
	if flag := cmd.Flag(questions.WriteFlag); flag != nil {
		c.write = flag.Value.String() == "true"
	}
	if err := c.loadConfig(cmd.Flag("config").Value.String()); err != nil {
		return err
	}
	if cmd.Name() == "copy" {
		return c.copyLedger(cmd.Context(), cmd.Flag(questions.FromFlag).Value.String())
	}
	if cmd.Name() == "ddl" { // it works without the warehouse
		return printDDL(cmd.Context(), c)
	}
	return c.openLedger(cmd.Context(), answers[cmd.Name()])
}

func (c *call) loadConfig(path string) (err error) {
	if c.config, err = exporter.LoadConfig(path); err != nil {
		return err
	}
	if c.config.Billing.Driver == config.DriverNone {
		return fmt.Errorf("%s: billing.driver is none, so there is no ledger: choose sqlite, postgres or bigquery", path)
	}
	return nil
}

// openLedger runs the subcommand with the ledger of the configuration. A file of SQLite that doesn't exist is an error:
// a query must not create it.
func (c *call) openLedger(ctx context.Context, run func(context.Context, *call) error) error {
	if err := exporter.HandOver(&c.config.Billing); err != nil {
		return err
	}
	if err := checkFile(&c.config.Billing); err != nil {
		return err
	}
	open := exporter.OpenReader
	if c.write {
		open = exporter.OpenStore
	}
	store, db, err := open(&c.config.Billing)
	if err != nil {
		return err
	}
	c.store, c.db = store, db
	return errors.Join(store.Explain(run(ctx, c)), db.Close())
}

// checkFile returns an error if the ledger is a file of SQLite that doesn't exist.
func checkFile(b *config.Billing) error {
	if b.Driver != config.DriverSQLite {
		return nil
	}
	if _, err := os.Stat(b.SQLite.Path); err != nil {
		return fmt.Errorf("billing.sqlite.path %s: there is no ledger (%w): run this where the exporter runs, after its start",
			b.SQLite.Path, err)
	}
	return nil
}
