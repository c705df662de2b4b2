package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/billing"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/distribution"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/doctor"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/get"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/migrate"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ns"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/quota"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/setup"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/sub"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/template"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tenant"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trees"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui"
)

// NewCommand returns the command "kubectl warren". A new subject is a package beside this one and a line here.
func NewCommand(inv *invocation.Invocation) *cobra.Command {
	warren := asPlugin(inv, &cobra.Command{
		Use:   invocation.ProgramName,
		Short: "Work with tenants and trees of namespaces",
	}, "kubectl warren")
	groups := []*cobra.Command{
		template.Commands(inv), setup.ConfigCommands(inv), billing.Commands(inv.Streams), migrate.Commands(inv),
		quota.Commands(inv),
	}
	warren.AddCommand(groups...)
	warren.AddCommand(sub.Commands(inv)...)
	warren.AddCommand(ns.Commands(inv)...)
	warren.AddCommand( // ordered by subject here; --help shows them in the order of their names
		tenant.CreateCommand(inv), tenant.AddCommand(inv), tenant.RemoveCommand(inv),
		trees.Command(inv), graph.Command(inv), get.Command(inv), describe.Command(inv), trace.Command(inv),
		distribution.Command(inv),
		rights.AccessCommand(inv), rights.WhoCanCommand(inv), rights.WhyCommand(inv),
		ui.Command(inv), doctor.Command(inv), setup.VetCommand(inv), setup.VersionCommand(inv),
	)
	warren.AddCommand(optionsCommand(warren))
	if err := warren.RegisterFlagCompletionFunc("namespace", inv.CompleteNamespaces); err != nil {
		panic(err) // asPlugin has added the flag
	}
	warren.InitDefaultCompletionCmd()
	arrangeHelp(warren)
	for _, group := range append(groups, warren, completionOf(warren)) {
		requireSubcommand(group)
	}
	return warren
}

// completionOf finds the command that cobra adds for the shells' completion.
func completionOf(top *cobra.Command) *cobra.Command {
	for _, command := range top.Commands() {
		if command.Name() == "completion" {
			return command
		}
	}
	panic("cobra has no command completion any more")
}

// asPlugin makes command the top of a plugin whose users type displayName.
func asPlugin(inv *invocation.Invocation, command *cobra.Command, displayName string) *cobra.Command {
	if command.Annotations == nil {
		command.Annotations = map[string]string{}
	}
	command.Annotations[cobra.CommandDisplayNameAnnotation] = displayName
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetIn(inv.Streams.In)
	command.SetOut(inv.Streams.Out)
	command.SetErr(inv.Streams.ErrOut)
	inv.Flags.AddFlags(command.PersistentFlags())
	command.PersistentPreRunE = refuseNamespace
	return command
}

// refuseNamespace fails where --namespace is given to a command that would ignore it. Words that a group of commands
// doesn't know are a fault that the group itself reports.
func refuseNamespace(cmd *cobra.Command, words []string) error {
	if cmd.HasSubCommands() && len(words) > 0 {
		return nil
	}
	if !cmd.Flags().Changed("namespace") || cmd.Annotations[invocation.UsesNamespace] != "" {
		return nil
	}
	instead := cmd.Annotations[invocation.InsteadOfNamespace]
	switch {
	case instead != "":
	case cmd.Flags().Lookup("tenant") != nil:
		instead = "name a tree by its root, as in --tenant payments"
	default:
		instead = "leave it out"
	}
	return fmt.Errorf("--namespace is not used by this command: %s", instead)
}

// requireSubcommand makes a command that groups others refuse words that it doesn't know. Without words, it does what
// the command does by itself or, if that is nothing, prints its help.
func requireSubcommand(group *cobra.Command) {
	group.Args = cobra.ArbitraryArgs
	group.SuggestionsMinimumDistance = 2 // cobra sets its default only on a path that we don't take
	alone := group.RunE                  // what the group does without words, if anything
	if alone == nil {
		alone = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	group.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return alone(cmd, args)
		}
		return unknownSubcommand(cmd, args[0])
	}
	group.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd == group && len(words) > 0 { // the flag belongs to a command that group doesn't have
			return unknownSubcommand(cmd, words[0])
		}
		if missing := (*pflag.ValueRequiredError)(nil); errors.As(err, &missing) {
			if choice, is := missing.GetFlag().Value.(*invocation.Choice); is {
				return fmt.Errorf("%w: it must be %s", err, choice.DescribeAllowed())
			}
		}
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
			return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "bool" {
			return fmt.Errorf("invalid argument %q for --%s: must be true or false, or left out", invalid.GetValue(), invalid.GetFlag().Name)
		}
		if number := (*strconv.NumError)(nil); errors.As(err, &number) && errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "int" {
			return fmt.Errorf("invalid argument %q for --%s: must be a whole number", invalid.GetValue(), invalid.GetFlag().Name)
		}
		return err
	})
}

// namesFor returns the commands of group that word means in other plugins.
func namesFor(group *cobra.Command, word string) (names []string) {
	for _, command := range group.Commands() {
		if slices.Contains(command.SuggestFor, word) {
			names = append(names, command.Name())
		}
	}
	return names
}

func unknownSubcommand(group *cobra.Command, word string) error {
	advice := "see " + group.CommandPath() + " --help"
	if word == "sudo" && !group.HasParent() {
		return fmt.Errorf("unknown command %q for %q: kubectl sudo is a plugin of its own, and begins the line: kubectl sudo warren …", word,
			group.CommandPath())
	}
	near := namesFor(group, word)
	if len(near) == 0 {
		near = group.SuggestionsFor(word) // what is spelled alike
	}
	if len(near) > 0 {
		advice = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q: %s", word, group.CommandPath(), advice)
}
