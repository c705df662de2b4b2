package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// helpGroups are the groups of commands in the help of "kubectl warren", in this order: first what people type every
// day.
var helpGroups = []struct {
	title    string
	commands []string
}{
	{"Every day:", []string{"ns", "tree", "describe", "get", "create", "delete", "trace", "quota", "ui"}},
	{"People and rights:", []string{"add", "remove", "access", "who-can", "why"}},
	{"Trees, for cluster admins and administrators of namespaces:", []string{
		"create-lns", "move", "graft", "cut", "mark", "set", "set-type", "protect", "template", "graph",
	}},
	{"The operator:", []string{"doctor", "config", "distribution", "vet", "billing", "migrate"}},
	{"About the plugin:", []string{"options", "version", "completion", "help"}},
}

func init() { cobra.AddTemplateFunc("ownFlags", listOwnFlags) } // cobra has one table of functions for all commands

// arrangeHelp gives each command of warren its group, and leaves the flags of kubectl to the command "options", as
// kubectl does.
func arrangeHelp(warren *cobra.Command) {
	for _, group := range helpGroups {
		warren.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range warren.Commands() {
			for _, name := range group.commands {
				if command.Name() == name {
					command.GroupID = group.title
				}
			}
		}
	}
	last := helpGroups[len(helpGroups)-1].title
	warren.SetHelpCommandGroupID(last)
	warren.SetCompletionCommandGroupID(last)
	before, rest, found := strings.Cut(warren.UsageTemplate(), "{{if .HasAvailableLocalFlags}}")
	_, after, ends := strings.Cut(rest, "{{if .HasHelpSubCommands}}")
	if !found || !ends {
		panic("cobra's template of usages has another form")
	}
	warren.SetUsageTemplate(before + "{{with ownFlags .}}\n\nFlags:\n{{. | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}" +
		strings.TrimSuffix(after, "\n") + "\n\nUse \"kubectl warren options\" for the flags of kubectl, which every command takes.\n")
}

// listOwnFlags describes the flags of a command but those of kubectl. Of these, commands that use it have --namespace.
func listOwnFlags(cmd *cobra.Command) string {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	cmd.InheritedFlags() // adds the flags of the parents to those of cmd
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		ofKubectl := cmd.Root().PersistentFlags().Lookup(f.Name) == f
		if !ofKubectl || f.Name == "namespace" && cmd.Annotations[invocation.UsesNamespace] != "" {
			flags.AddFlag(f)
		}
	})
	return flags.FlagUsages()
}

// optionsCommand is the command "options".
func optionsCommand(warren *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags of kubectl, which every command takes", Args: cobra.NoArgs,
		Example: "  kubectl warren options",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "Every command takes these flags of kubectl:\n\n",
				warren.PersistentFlags().FlagUsages())
			return err
		},
	}
}
