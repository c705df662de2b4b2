// Package cli is the command `manager billing`: queries of the ledger and corrections to it. Users run the command in the
// exporter's pod, where driver and password are.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

// command is one subcommand.
type command struct {
	// takes names the one argument after the subcommand's name; empty for a subcommand without one.
	takes string
	// flags declares the subcommand's own flags; nil for none.
	flags func(*call, *flag.FlagSet)
	run   func(context.Context, *call) error
	// offline says that the subcommand reads the configuration only, so that it works without the warehouse.
	offline bool
}

// call is one run of a subcommand.
type call struct {
	config *config.OperatorConfiguration
	store  *billing.Store
	word   string
	out    io.Writer
	format string

	// Flags of single subcommands.
	costCenter, owner, from, until, author, reason string
	costCenterSet, ownerSet                        bool
	dryRun                                         bool
	operatorNamespace                              string
}

var commands = map[string]command{
	"status":  {run: status},
	"history": {takes: "TENANT", run: history},
	"at":      {takes: "TIME", run: holders},
	"export":  {run: export},
	"ddl":     {run: ddl, offline: true},
	"correct": {takes: "TENANT", run: correct, flags: func(c *call, f *flag.FlagSet) {
		f.StringVar(&c.costCenter, "cost-center", "", "what should have paid")
		f.StringVar(&c.owner, "owner", "", "who should have been asked")
		f.StringVar(&c.from, "from", "", "from when on: a day or an instant in RFC 3339")
		f.StringVar(&c.until, "until", "", "until when; now where it is left out")
		f.StringVar(&c.author, "author", "", "who corrects")
		f.StringVar(&c.reason, "reason", "", "why")
	}},
	"reconcile": {run: reconcile, flags: func(c *call, f *flag.FlagSet) {
		f.BoolVar(&c.dryRun, "dry-run", false, "print what differs, and write nothing")
		f.StringVar(&c.operatorNamespace, "operator-namespace", exporter.DefaultNamespace, "the operator's own namespace, which is protected")
		kubeconfig := flag.CommandLine.Lookup("kubeconfig")
		f.Var(kubeconfig.Value, "kubeconfig", kubeconfig.Usage)
	}},
}

// Names are the subcommands.
func Names() []string { return slices.Sorted(maps.Keys(commands)) }

// Run carries out `manager billing NAME [WORD] [FLAG…]`. Flags may stand before and behind the word.
func Run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("name a subcommand: %s", strings.Join(Names(), ", "))
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		_, err := fmt.Fprintf(out, "Usage: billing COMMAND [FLAG…]\n\nCommands: %s. Each tells its flags by --help.\n", strings.Join(Names(), ", "))
		return err
	}
	cmd, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown subcommand %q: choose one of %s", args[0], strings.Join(Names(), ", "))
	}
	c := &call{out: out}
	path, err := c.read(args[0], cmd, args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if err := c.load(path); err != nil {
		return err
	}
	if cmd.offline {
		return cmd.run(ctx, c)
	}
	return c.open(ctx, cmd.run)
}

// read parses words and flags, and returns the path of the configuration. It prints nothing but help, because a program may read
// the output.
func (c *call) read(name string, cmd command, args []string) (path string, err error) {
	flags := flag.NewFlagSet("billing "+name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&path, "config", "/etc/warren/config.yaml", "the operator's configuration file")
	flags.StringVar(&c.format, "o", "table", "table, csv or json")
	if cmd.flags != nil {
		cmd.flags(c, flags)
	}
	words, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(c.out, "Usage: billing %s [FLAG…]\n", strings.TrimSpace(name+" "+cmd.takes))
		flags.SetOutput(c.out)
		flags.PrintDefaults()
		return "", err
	case err != nil:
		return "", flagProblem(name, err)
	case cmd.takes == "" && len(words) > 0:
		return "", fmt.Errorf("%s takes nothing behind its name, not %q: leave it out", name, strings.Join(words, " "))
	case cmd.takes != "" && len(words) != 1:
		return "", fmt.Errorf("%s takes %s behind its name, and no more: got %d words", name, cmd.takes, len(words))
	case !slices.Contains([]string{"table", "csv", "json"}, c.format):
		return "", fmt.Errorf("-o %q: choose table, csv or json", c.format)
	}
	c.word = strings.Join(words, "")
	flags.Visit(func(f *flag.Flag) {
		c.costCenterSet = c.costCenterSet || f.Name == "cost-center"
		c.ownerSet = c.ownerSet || f.Name == "owner"
	})
	return path, nil
}

// flagProblem returns an error of package flag as a sentence.
func flagProblem(name string, err error) error {
	if unknown, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: "); ok {
		return fmt.Errorf("%s: %s has no such flag; `billing %s -h` lists those that it has", unknown, name, name)
	}
	return fmt.Errorf("billing %s: %w", name, err)
}

func (c *call) load(path string) (err error) {
	if c.config, err = exporter.LoadConfig(path); err != nil {
		return err
	}
	if c.config.Billing.Driver == config.DriverNone {
		return fmt.Errorf("%s: billing.driver is none, so there is no ledger: choose sqlite, postgres or bigquery", path)
	}
	return nil
}

// open runs the subcommand with the ledger of the configuration. A file of SQLite that doesn't exist is an error: a query must not
// create it.
func (c *call) open(ctx context.Context, run func(context.Context, *call) error) error {
	if err := exporter.HandOver(&c.config.Billing); err != nil {
		return err
	}
	if b := c.config.Billing; b.Driver == config.DriverSQLite {
		if _, err := os.Stat(b.SQLite.Path); err != nil {
			return fmt.Errorf("billing.sqlite.path %s: there is no ledger (%w): run this where the exporter runs, after its start", b.SQLite.Path, err)
		}
	}
	store, db, err := exporter.OpenStore(&c.config.Billing)
	if err != nil {
		return err
	}
	c.store = store
	return errors.Join(store.Explain(run(ctx, c)), db.Close())
}

// parse returns the words among args, and sets the flags, which may stand before or after words, as with kubectl.
func parse(flags *flag.FlagSet, args []string) (words []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return words, nil
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
}

// instant returns the time that text gives as a day, in UTC, or as an instant in RFC 3339.
func instant(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, fmt.Errorf("%s is missing: write a day as 2026-03-01, in UTC, or an instant as 2026-03-01T09:00:00Z", name)
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is no time: write a day as 2026-03-01, in UTC, or an instant as 2026-03-01T09:00:00Z", name, text)
}
