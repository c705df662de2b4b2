// Package plugin is kubectl warren as a whole: it puts the commands of all subjects together, carries one out, and
// turns an error into sentences and an exit status. Each subject has a package of its own beside this one.
package plugin

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tenant"
)

// Run carries out the command line args, whose first item is the name under which the program was called, and returns
// the exit status: 0, or 1 after any error; vet and set have other statuses, too. An error is one line on ErrOut, or
// one for each problem of a file. Nothing is written to Out then, except what doctor and vet found, what set and
// migrate have written, and what get --watch, billing and ui have shown.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, build invocation.Build) int {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime writes to stderr that it has no logger
	streams.Out, streams.ErrOut = terminal.NewWriter(streams.Out), terminal.NewWriter(streams.ErrOut)
	inv := &invocation.Invocation{Flags: genericclioptions.NewConfigFlags(true), Streams: streams, Build: build}
	name, rest := calledAs(args)
	top := NewCommand(inv)
	if name == createLNSName {
		top = asPlugin(inv, tenant.CreateCommand(inv), "kubectl create lns")
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

// exitStatus is the exit status for an error: its own, or 1.
func exitStatus(err error) int {
	if own, ok := errors.AsType[invocation.StatusError](err); ok {
		return own.Status
	}
	return 1
}

// errorSentences are what the user reads of an error, one line each.
func errorSentences(err error) []string {
	if many, ok := errors.AsType[invocation.Problems](err); ok {
		return many
	}
	return []string{failure.Describe(err)}
}

// Other names of the program.
const (
	createLNSName  = "kubectl-create-lns"
	completePrefix = "kubectl_complete-"
)

// calledAs splits args into the name of the plugin and its arguments. kubectl completes the words of plugin X by
// running kubectl_complete-X with them; cobra's answer to that is its hidden command __complete.
func calledAs(args []string) (name string, rest []string) {
	if len(args) == 0 {
		return invocation.ProgramName, []string{}
	}
	name = strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	rest = append([]string{}, args[1:]...) // never nil: cobra replaces nil by os.Args
	if completed, ok := strings.CutPrefix(name, completePrefix); ok {
		return "kubectl-" + completed, append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	return name, rest
}
