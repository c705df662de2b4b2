package sudo

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
)

const (
	displayName    = "kubectl sudo"
	completionName = "kubectl_complete-sudo"

	flagTenant = "tenant"
	flagReason = "reason"
	flagAll    = "all-namespaces"
)

const long = `Run one command of kubectl with the rights of a tenant's sudoers: cluster-admin in its tree, and nowhere else.

The tenant is the one that --tenant names, else the one that COMMAND names: edit lns payments, warren get pods --tenant payments. If
neither names one, it is the tenant of the namespace of -n, else of the one that COMMAND is about (get ns pay-web, warren tree pay-web),
else of the context's. Objects in files, as of apply -f, are not read: add -n.

Where you have no standing sudo, COMMAND runs with sudo on request, if you have that now: ask for it by kubectl sudo request.

kubectl sudo runs "kubectl COMMAND --as=USER --as-group=TENANT-sudoers". USER is your own name. If you are a sudoer only as a member of
a group, or as a service account, USER is warren:sudo:TENANT. The API server's audit log has this under your name, with the text of
--reason.

Write the flags below before COMMAND; everything after COMMAND is for kubectl. The flags of kubectl that select the API server
and the namespace (such as -n, --context, --kubeconfig) may be before or after COMMAND.`

const example = `  kubectl sudo get secrets -n pay-web
  kubectl sudo --reason "INC-42: stuck rollout" delete pod web-0 -n pay-web
  kubectl sudo edit lns payments
  kubectl sudo --tenant payments auth whoami
  kubectl sudo --list
  kubectl sudo request --tenant payments --for 30m --reason "INC-42: restore the ledger" --wait
  kubectl sudo approve sudo-x7k2p --tenant payments`

// calledAs returns the arguments behind the name of the program, and whether the name asks to complete them.
func calledAs(args []string) (words []string, completing bool) {
	if len(args) == 0 {
		return []string{}, false
	}
	words = append([]string{}, args[1:]...) // never nil: cobra replaces nil by os.Args
	return words, strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completionName
}

func (c *call) buildCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "kubectl-sudo [--tenant TENANT] [--reason TEXT] COMMAND [ARGUMENT...]",
		Short: "Run one command of kubectl with the rights of a tenant's sudoers",
		Long:  long, Example: example,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: displayName},
		Args:          cobra.ArbitraryArgs,
		RunE:          c.runSudo,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	command.SetIn(c.streams.In)
	command.SetOut(c.streams.Out)
	command.SetErr(c.streams.ErrOut)
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
			return fmt.Errorf("%w: if kubectl has this flag, write it after COMMAND; see kubectl sudo --help", err)
		}
		return fmt.Errorf("%w: see kubectl sudo --help", err)
	})
	c.addFlags(command.Flags())
	command.AddCommand(c.buildRequestCommands()...)
	command.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // kubectl sudo help is kubectl help, with sudo
	if err := errors.Join(
		command.RegisterFlagCompletionFunc(flagTenant, c.completeTenants),
		command.RegisterFlagCompletionFunc(flagReason, cobra.NoFileCompletions),
	); err != nil {
		panic(err) // the flags were just added
	}
	return command
}

func (c *call) addFlags(flags *pflag.FlagSet) {
	flags.SetInterspersed(false) // what follows COMMAND is kubectl's
	flags.SortFlags = false
	flags.StringVar(&c.tenant, flagTenant, "",
		"The tenant, if the namespace belongs to none, or to another one than you mean")
	flags.StringVar(&c.reason, flagReason, "", "Why, for the API server's audit log")
	flags.BoolVar(&c.listing, "list", false,
		"Print the tenants in which you may use sudo, one name a line, and run nothing")
	flags.BoolP(flagAll, "A", false, "") // defined only to be refused
	c.connection.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
	flags.AddFlagSet(c.connection)
	flags.Lookup(flagAll).Hidden = true
}

// leadingFlags returns the flags of kubectl that the user wrote before COMMAND. kubectl gets them after COMMAND. A flag
// that sudo refuses, such as --as, is an error.
func (c *call) leadingFlags() (flags []string, err error) {
	c.connection.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && err == nil {
			err = refuseFlag(flag.Name, flag.Value.String())
		}
	})
	return kubectl.GivenFlags(c.connection), err
}

// forgotten are commands of kubectl that are the value of --reason only if its text was forgotten.
var forgotten = []string{"apply", "auth", "create", "delete", "describe", "edit", "exec", "get", "logs", "patch", "rollout", "scale",
	"warren"}

// validateFlags checks the values of the flags of kubectl sudo. --reason is sent in a header of each request, so it
// must be one line.
func (c *call) validateFlags(flags *pflag.FlagSet) error {
	c.reason = strings.TrimSpace(c.reason)
	switch {
	case flags.Changed(flagAll):
		return refuseFlag(flagAll, flags.Lookup(flagAll).Value.String())
	case flags.Changed(flagTenant) && c.tenant == "":
		return errors.New("--tenant is empty: name a tenant, or leave it out")
	case flags.Changed(flagReason) && c.reason == "":
		return errors.New("--reason is empty: say why, or leave it out")
	case slices.Contains(forgotten, c.reason):
		return fmt.Errorf("--reason has no text: its value is %q, a command of kubectl", c.reason)
	case strings.ContainsFunc(c.reason, unicode.IsControl):
		return fmt.Errorf("--reason %q holds a control character: it must be one line of text", c.reason)
	case strings.ContainsFunc(c.reason, hidesText):
		return fmt.Errorf("--reason %+q holds a character that breaks the line or turns the direction of text: write plain text", c.reason)
	case strings.ContainsFunc(c.reason, isInvisible):
		return fmt.Errorf("--reason %+q holds a character that no log shows: write plain text", c.reason)
	}
	return nil
}

// hidesText reports whether a log that holds the character would show something else than was written.
func hidesText(r rune) bool { return unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) }

// isInvisible reports whether the character shows nothing. The two that join letters, or keep them apart, are part of the
// spelling of some languages.
func isInvisible(r rune) bool { return unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' }
