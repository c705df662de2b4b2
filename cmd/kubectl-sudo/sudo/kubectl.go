package sudo

import (
	"fmt"
	"slices"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// kubectlArguments returns the arguments for kubectl. The flags of impersonation, and those that the user wrote before
// COMMAND, follow right after COMMAND: kubectl refuses flags before a plugin's name, and arguments after -- are no
// flags.
func kubectlArguments(words, leading []string, as rest.ImpersonationConfig, reason string) []string {
	flags := append(slices.Clone(leading), "--as="+as.UserName)
	for _, group := range as.Groups {
		flags = append(flags, "--as-group="+group)
	}
	if reason != "" {
		flags = append(flags, "--as-user-extra="+v1alpha1.Domain+"/reason="+reason)
	}
	return slices.Concat(words[:1], flags, words[1:])
}

// execution is one run of kubectl.
type execution struct {
	path string
	args []string // without the program's name
	// tenant in whose tree sudo has effect.
	tenant string
	// watched reports whether kubectl's stderr is searched for a refusal that needs an explanation.
	watched bool
}

// replaceProcess replaces this process by kubectl, which then has the terminal, the signals and the exit status. It
// returns only if that fails, or if kubectl must run as a watched child.
//
// To watch kubectl, this process runs it as a child whose stderr is a pipe. The child's messages then lack a terminal,
// so kubectl is watched only with constrained impersonation. In that mode, the API server answers each request outside
// of the tree with a 403 about impersonation, which misleads users. With legacy impersonation, the 403 names what the
// user may not do, and needs no explanation.
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
		terminal.Fprintf(streams.ErrOut, "sudo gives rights only in the tree of tenant %s\n", e.tenant)
	}
	return statusOf(ended), nil
}
