// Package sudo is kubectl sudo: it finds the tenant for a command of kubectl, and runs kubectl with the rights of that
// tenant's sudoers, by impersonation. It grants no rights: a user can do the same by typing --as and --as-group.
package sudo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// Run carries out the command line args, whose first item is the name under which the program was called, and returns
// the exit status: that of kubectl, or 1 after an error. The error is one line on ErrOut; if COMMAND is missing, the
// usage is printed there instead. If kubectl takes the place of this process, Run doesn't return.
func Run(args []string, streams genericiooptions.IOStreams, version string) int {
	log.SetLogger(logr.Discard()) // otherwise controller-runtime writes to stderr that it has no logger
	c := newCall(streams, version)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.prepareExecution(ctx, args)
	stop() // from here on, signals are for kubectl
	status := 0
	if err == nil && c.kubectl != nil {
		status, err = c.kubectl.replaceProcess(streams)
	}
	switch {
	case errors.Is(err, errUsage):
		return 1
	case err != nil:
		terminal.Fprintln(streams.ErrOut, "error: "+failure.Describe(err))
		return 1
	}
	return status
}

// errUsage reports that the usage was printed in place of an error message.
var errUsage = errors.New("a command is missing")

// call is one call of kubectl sudo.
type call struct {
	streams genericiooptions.IOStreams
	agent   string

	tenant, reason string // --tenant, --reason
	about          string // the namespace that COMMAND is about, as in get ns NAME; "" if it names none
	listing        bool   // --list

	flags      *genericclioptions.ConfigFlags
	connection *pflag.FlagSet // flags as a set: kubectl's flags that determine the API server, the user and the namespace

	// kubectl is the run of kubectl that follows; nil if none follows.
	kubectl *execution
}

func newCall(streams genericiooptions.IOStreams, version string) *call {
	c := &call{
		streams: streams, agent: "kubectl-sudo/" + version,
		flags: genericclioptions.NewConfigFlags(true), connection: pflag.NewFlagSet("", pflag.ContinueOnError),
	}
	c.flags.AddFlags(c.connection)
	return c
}

// prepareExecution reads the command line and does everything that precedes the run of kubectl.
func (c *call) prepareExecution(ctx context.Context, args []string) error {
	words, completing := calledAs(args)
	if completing {
		return c.completeWords(ctx, words)
	}
	command := c.buildCommand()
	command.SetArgs(words)
	return command.ExecuteContext(ctx)
}

// runSudo carries out the only command of this program. words are COMMAND and the words after it.
func (c *call) runSudo(cmd *cobra.Command, words []string) error {
	ctx := cmd.Context()
	switch {
	case c.listing && len(words) > 0:
		return fmt.Errorf("--list takes no COMMAND, but %q is given", words[0])
	case c.listing:
		return c.listTenants(ctx)
	case len(words) == 0:
		cmd.SetOut(c.streams.ErrOut)
		return errors.Join(cmd.Help(), errUsage)
	}
	if err := c.validateFlags(cmd.Flags()); err != nil {
		return err
	}
	leading, err := c.leadingFlags()
	if err != nil {
		return err
	}
	named, err := readWords(c.connection, words, func(flag *pflag.Flag, behind []string) bool {
		return kubectl.IsGlobalFlag(ctx, flag, behind)
	})
	if err != nil {
		return err
	}
	path, err := kubectl.Find()
	if err != nil {
		return err
	}
	me, err := c.identifyUser(ctx)
	if err != nil {
		return err
	}
	c.about = namespaceIn(words)
	named = cmp.Or(named, tenantIn(words))
	tenant, refusal := c.tenantOf(ctx, me, named)
	as, isConstrained := me.impersonation(tenant), me.constrainedIn(tenant)
	if refusal != nil {
		if tenant, err = c.findGrant(ctx, named, refusal); err != nil {
			return err
		}
		if c.reason != "" {
			return errors.New("--reason can't be used with sudo on request: the request has a reason")
		}
		as, isConstrained = temporary(tenant), false
	}
	if err := c.checkImpersonation(ctx, as); err != nil {
		return err
	}
	c.kubectl = &execution{
		path: path, args: kubectlArguments(words, leading, as, c.reason), tenant: tenant, watched: isConstrained,
	}
	return nil
}
