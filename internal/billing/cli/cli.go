// Package cli is `manager billing`: questions to the ledger and corrections, asked in the exporter's pod or beside it, so that
// whoever asks needs neither a driver nor a password.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

// command is one subcommand.
type command struct {
	// takes is what stands behind the name, in a usage line; words is how many there are.
	takes string
	words int
	// flags declares those of its own.
	flags func(*call, *flag.FlagSet)
	run   func(context.Context, *call) error
}

// call is one run of a subcommand.
type call struct {
	config *config.OperatorConfiguration
	store  *billing.Store
	words  []string
	out    io.Writer
	format string

	// Flags of single subcommands.
	costCenter, owner, from, until, author, reason string
	costCenterSet, ownerSet                        bool
	dryRun                                         bool
}

var commands = map[string]command{
	"status":  {run: status},
	"history": {takes: "TENANT", words: 1, run: history},
	"at":      {takes: "TIME", words: 1, run: holders},
	"export":  {run: export},
	"ddl":     {run: ddl},
	"correct": {takes: "TENANT", words: 1, run: correct, flags: func(c *call, f *flag.FlagSet) {
		f.StringVar(&c.costCenter, "cost-center", "", "what should have paid")
		f.StringVar(&c.owner, "owner", "", "who should have been asked")
		f.StringVar(&c.from, "from", "", "from when on: a day or an instant in RFC 3339")
		f.StringVar(&c.until, "until", "", "until when; now where it is left out")
		f.StringVar(&c.author, "author", "", "who corrects")
		f.StringVar(&c.reason, "reason", "", "why")
	}},
	"reconcile": {run: reconcile, flags: func(c *call, f *flag.FlagSet) {
		f.BoolVar(&c.dryRun, "dry-run", false, "print what differs, and write nothing")
	}},
}

// Names are the subcommands.
func Names() []string { return slices.Sorted(maps.Keys(commands)) }

// Run carries out `manager billing NAME [WORD] [FLAG…]`. Flags may stand before and behind the word.
func Run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("name a subcommand: %s", strings.Join(Names(), ", "))
	}
	cmd, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown subcommand %q: choose one of %s", args[0], strings.Join(Names(), ", "))
	}
	c := &call{out: out}
	flags := flag.NewFlagSet("billing "+args[0], flag.ContinueOnError)
	flags.SetOutput(out)
	path := flags.String("config", "/etc/warren/config.yaml", "the operator's configuration file")
	flags.StringVar(&c.format, "o", "table", "table, csv or json")
	if cmd.flags != nil {
		cmd.flags(c, flags)
	}
	words, err := parse(flags, args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if len(words) != cmd.words {
		return fmt.Errorf("usage: billing %s: got %d words behind the name, it takes %d", strings.TrimSpace(args[0]+" "+cmd.takes), len(words), cmd.words)
	}
	if !slices.Contains([]string{"table", "csv", "json"}, c.format) {
		return fmt.Errorf("-o %q: choose table, csv or json", c.format)
	}
	flags.Visit(func(f *flag.Flag) {
		c.costCenterSet = c.costCenterSet || f.Name == "cost-center"
		c.ownerSet = c.ownerSet || f.Name == "owner"
	})
	c.words = words
	return c.open(ctx, *path, cmd.run)
}

// open has the subcommand run with the ledger of the configuration.
func (c *call) open(ctx context.Context, path string, run func(context.Context, *call) error) error {
	var err error
	if c.config, err = exporter.LoadConfig(path); err != nil {
		return err
	}
	if c.config.Billing.Driver == config.DriverNone {
		return fmt.Errorf("%s: billing.driver is none: there is no ledger", path)
	}
	store, db, err := exporter.OpenStore(&c.config.Billing)
	if err != nil {
		return err
	}
	c.store = store
	return errors.Join(run(ctx, c), db.Close())
}

// parse lets flags stand behind words, as kubectl does.
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

// instant reads a day or an instant.
func instant(name, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q is no time: write a day as 2026-03-01, in UTC, or an instant as 2026-03-01T09:00:00Z", name, text)
}
