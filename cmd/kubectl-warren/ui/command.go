// Package ui is the command "kubectl warren ui": a page on loopback that shows the forest, live, with the rights of the
// person who runs it. Package protect decides which requests the server answers, and restrict which requests it may
// send to the API server. Package live follows the forest. Package changes holds the changes that a person may preview
// and run.
package ui

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/changes"
)

// Lifetimes of the program.
const (
	usualLifetime   = 8 * time.Hour
	longestLifetime = 24 * time.Hour
)

// settings has the values of the flags.
type settings struct {
	port         int
	open         bool
	allowChanges bool
	lifetime     time.Duration
	auditLog     string
	roots        []string
	// connection are the flags of the connection, for the commands that the pages show. Tokens and passwords are left out.
	connection []string
}

// quoteCommand writes words and the flags of the connection as a command for a shell.
func (s *settings) quoteCommand(words ...string) string {
	return changes.Quote(slices.Concat(words, s.connection)...)
}

// Command is the command "ui [ROOT…]".
func Command(inv *invocation.Invocation) *cobra.Command {
	s := &settings{}
	cmd := &cobra.Command{
		Use:   "ui [ROOT…]",
		Short: "Show the trees of namespaces on a page of this machine, live",
		Long: "Show the trees of namespaces on a page of this machine, live, with your own rights. Nothing is installed in the cluster.\n" +
			"The page is served on a loopback address of this machine alone. The address that is printed works once; Enter prints another.\n" +
			"Pages about objects, questions and changes name the command that does the same.",
		Example:           "  kubectl warren ui --open\n  kubectl warren ui payments --allow-changes",
		ValidArgsFunction: inv.CompleteNamespaces,
	}
	cmd.Flags().IntVar(&s.port, "port", 0, "Listen on this port of 127.0.0.1, for a tunnel; 0 chooses a free port, at a random loopback address if the system has several")
	cmd.Flags().BoolVar(&s.open, "open", false, "Open the page in the browser")
	cmd.Flags().BoolVar(&s.allowChanges, "allow-changes", false,
		"Let the page change what you confirm there; else it shows commands to copy")
	cmd.Flags().DurationVar(&s.lifetime, "lifetime", usualLifetime, "End after this time, at most 24h")
	cmd.Flags().StringVar(&s.auditLog, "audit-log", "", "Audit log of the API server, for the history of sudo")
	cmd.RunE = func(cmd *cobra.Command, roots []string) error {
		s.roots, s.connection = roots, connectionFlags(cmd)
		if err := s.checkSettings(inv); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP)
		defer stop()
		signal.Ignore(syscall.SIGPIPE) // else the program would end without its cleanup once a reader of its output, such as head, ends
		return runServer(ctx, inv, s)
	}
	return cmd
}

// connectionFlags returns the flags by which a command on a page reaches the same API server as the same user, without
// secrets.
func connectionFlags(cmd *cobra.Command) []string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.InheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "token" && flag.Name != "password" {
			shown.AddFlag(flag)
		}
	})
	return kubectl.GivenFlags(shown)
}

func (s *settings) checkSettings(inv *invocation.Invocation) error {
	if err := invocation.CheckNamespaces(s.roots...); err != nil {
		return err
	}
	switch {
	case s.port < 0 || s.port > 65535:
		return fmt.Errorf("invalid --port %d: must be between 0 and 65535", s.port)
	case s.lifetime <= 0 || s.lifetime > longestLifetime:
		return fmt.Errorf("invalid --lifetime %s: must be more than 0 and at most 24h", s.lifetime)
	case s.allowChanges && isSudo(*inv.Flags.ImpersonateGroup):
		return errors.New("sudo is for one command: leave out --allow-changes, or leave out --as-group and use sudo on the page of a change")
	}
	return nil
}

func isSudo(groups []string) bool {
	for _, group := range groups {
		if strings.HasSuffix(group, v1alpha1.SudoersSuffix) {
			return true
		}
	}
	return false
}

// runServer serves the pages until ctx is done or the lifetime is over.
func runServer(ctx context.Context, inv *invocation.Invocation, s *settings) error {
	server, err := newServer(ctx, inv, s)
	if err != nil {
		return err
	}
	return server.runListener(ctx)
}
