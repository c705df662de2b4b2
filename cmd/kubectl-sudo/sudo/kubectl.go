package sudo

import (
	"fmt"
	"slices"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// kubectlArguments returns those of kubectl. Our flags, and those that stood before COMMAND, go right behind it: kubectl refuses flags
// before the name of a plugin, and what follows -- is no flag.
func kubectlArguments(words, leading []string, user, tenant, reason string) []string {
	flags := append(slices.Clone(leading), "--as="+user, "--as-group="+v1alpha1.SudoersGroup(tenant))
	if reason != "" {
		flags = append(flags, "--as-user-extra="+v1alpha1.Domain+"/reason="+reason)
	}
	return slices.Concat(words[:1], flags, words[1:])
}

// execution is one run of kubectl.
type execution struct {
	path string
	args []string // behind the program's name
	// tenant in which sudo holds.
	tenant string
	// watched: its stderr is looked at, for a refusal that needs a word of explanation.
	watched bool
}

// replaceProcess lets kubectl take the place of this process: terminal, signals and exit status are its own. It returns only where that
// can't be, and where kubectl has to be watched.
//
// Watching costs something: kubectl is a child then, and its stderr a pipe. It is for constrained impersonation only. There, whatever
// lies outside the tree is answered with a 403 about impersonation, which leads astray who doesn't know why. Legacy impersonation says
// plainly what may not be done, so there is nothing to explain.
func (e *execution) replaceProcess(streams genericiooptions.IOStreams) (status int, err error) {
	if e.watched {
		return e.watchChild(streams)
	}
	return 1, fmt.Errorf("running %s: %w", e.path, replaceProcessBy(e.path, e.args))
}

// watchChild runs kubectl as a child and explains a refusal to impersonate.
func (e *execution) watchChild(streams genericiooptions.IOStreams) (status int, err error) {
	said := &refusals403{to: streams.ErrOut}
	ended, err := runChild(e.path, e.args, streams, said)
	if err != nil {
		return 1, fmt.Errorf("running %s: %w", e.path, err)
	}
	if !ended.Success() && said.impersonation {
		terminal.Fprintf(streams.ErrOut, "sudo holds in the tree of %s only\n", e.tenant)
	}
	return statusOf(ended), nil
}
