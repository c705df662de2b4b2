// Package command holds the commands of kubectl warren.
package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/billing"
)

// Run carries out the command line args, whose first item is the name under which the program was called, and returns the exit
// status: 0, or 1 after any error; vet has more. An error is one line on ErrOut, or one for each problem of a file, and then
// nothing is written to Out, but for what doctor and vet found.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, build Build) int {
	log.SetLogger(logr.Discard()) // else controller-runtime asks for one on stderr
	streams.Out, streams.ErrOut = terminal.NewWriter(streams.Out), terminal.NewWriter(streams.ErrOut)
	p := &plugin{flags: genericclioptions.NewConfigFlags(true), streams: streams, build: build}
	name, rest := calledAs(args)
	top := p.warrenCommand()
	if name == createLNSName {
		top = p.asPlugin(p.createLNS(), "kubectl create lns")
	}
	top.SetArgs(rest)
	if err := top.ExecuteContext(ctx); err != nil {
		for _, sentence := range errorSentences(err) {
			terminal.Fprintln(streams.ErrOut, "error: "+sentence)
		}
		return exitStatus(err)
	}
	return 0
}

// problems is an error of several sentences, one line each.
type problems []string

func (p problems) Error() string { return strings.Join(p, "\n") }

func errorSentences(err error) []string {
	var many problems
	if errors.As(err, &many) {
		return many
	}
	return []string{failure.Sentence(err)}
}

// Names of the program.
const (
	warrenName     = "kubectl-warren"
	createLNSName  = "kubectl-create-lns"
	completePrefix = "kubectl_complete-"
)

// calledAs splits args into the name of the plugin and its arguments. kubectl completes the words of plugin X by running
// kubectl_complete-X with them; cobra's answer to that is its hidden command __complete.
func calledAs(args []string) (name string, rest []string) {
	if len(args) == 0 {
		return warrenName, []string{}
	}
	name = strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	rest = append([]string{}, args[1:]...) // never nil, which cobra takes for os.Args
	if completed, ok := strings.CutPrefix(name, completePrefix); ok {
		return "kubectl-" + completed, append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	return name, rest
}

// plugin is what the commands of one call share.
type plugin struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	build   Build
}

// warrenCommand is the command "kubectl warren".
func (p *plugin) warrenCommand() *cobra.Command {
	warren := p.asPlugin(&cobra.Command{
		Use:   warrenName,
		Short: "Work with tenants and trees of namespaces",
	}, "kubectl warren")
	groups := []*cobra.Command{p.subCommands(), p.nsCommands(), p.templateCommands(), p.configCommands(), billing.Commands(p.streams)}
	warren.AddCommand(groups...)
	warren.AddCommand(p.createCommand(), p.subDelete(), p.describeCommand(), p.listCommand(), p.treeCommand(), p.createLNS(), p.setCommand(), p.protectCommand(), p.traceCommand(), p.distribution(), p.accessCommand(), p.whoCanCommand(), p.whyCommand(), p.doctorCommand(), p.vetCommand(), p.versionCommand())
	warren.InitDefaultCompletionCmd()
	for _, group := range append(groups, warren, completionOf(warren)) {
		requireSubcommand(group)
	}
	return warren
}

func completionOf(top *cobra.Command) *cobra.Command {
	for _, command := range top.Commands() {
		if command.Name() == "completion" {
			return command
		}
	}
	panic("cobra has no command completion any more")
}

// asPlugin makes command the top of a plugin whose users type displayName.
func (p *plugin) asPlugin(command *cobra.Command, displayName string) *cobra.Command {
	command.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: displayName}
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetIn(p.streams.In)
	command.SetOut(p.streams.Out)
	command.SetErr(p.streams.ErrOut)
	p.flags.AddFlags(command.PersistentFlags())
	command.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return refuseNamespace(cmd) }
	return command
}

// usesNamespace is the annotation of commands to which --namespace means something.
const usesNamespace = "uses-namespace"

// refuseNamespace fails where --namespace is given to a command that would ignore it.
func refuseNamespace(cmd *cobra.Command) error {
	if cmd.Flags().Changed("namespace") && cmd.Annotations[usesNamespace] == "" {
		return fmt.Errorf("--namespace is not used by this command")
	}
	return nil
}

// requireSubcommand lets a command that only groups others print its help, and refuse words that it doesn't know.
func requireSubcommand(group *cobra.Command) {
	group.Args = cobra.ArbitraryArgs
	group.SuggestionsMinimumDistance = 2 // cobra sets its default only on a path that we don't take
	group.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		advice := "see " + cmd.CommandPath() + " --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			advice = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return fmt.Errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), advice)
	}
}
