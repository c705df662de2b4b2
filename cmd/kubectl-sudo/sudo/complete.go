package sudo

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// completionPatience is the timeout of each request that completes --tenant or NAME, unless the user sets --request-timeout.
const completionPatience = "3s"

// completeWords answers the shell's completion. It completes the flags of kubectl sudo and the names of tenants itself,
// and asks kubectl about COMMAND and the words after it. It asks kubectl without sudo, because a press of the tab key
// must not use raised rights. So names that the user may see only with sudo are not offered.
func (c *call) completeWords(ctx context.Context, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	parsed := newCall(c.streams, "")
	flags := parsed.buildCommand().Flags()
	err := flags.Parse(words[:len(words)-1])
	if err != nil || flags.NArg() == 0 && strings.HasPrefix(last, "-") || isRequestCommand(flags.Arg(0)) {
		command := c.buildCommand()
		command.SetArgs(append([]string{cobra.ShellCompRequestCmd}, words...))
		return command.ExecuteContext(ctx)
	}
	path, err := kubectl.Find()
	if err != nil {
		return err
	}
	leading, err := parsed.leadingFlags()
	if err != nil {
		return err
	}
	args := append(flags.Args(), last)
	if len(args) > 1 { // while COMMAND itself is completed, the flags are left out: after a flag, kubectl offers no plugins
		args = slices.Insert(args, 1, leading...)
	}
	c.kubectl = &execution{path: path, args: slices.Insert(args, 0, cobra.ShellCompRequestCmd)}
	return nil
}

// completeRequests offers the names of the requests that a verdict can be about: those that are not over, and to approve, those of others
// that wait.
func (c *call) completeRequests(verdict v1alpha1.SudoVerdict) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) (offered []string, _ cobra.ShellCompDirective) {
		if !c.connection.Changed("request-timeout") {
			*c.flags.Timeout = completionPatience
		}
		api, me, tenant, err := c.beginRequest(cmd.Context())
		all := &v1alpha1.SudoRequestList{}
		if err != nil || len(given) > 0 || api.List(cmd.Context(), all, client.InNamespace(tenant)) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for i := range all.Items {
			r := &all.Items[i]
			approvable := r.Spec.User != me && describeState(r) != string(v1alpha1.ReasonGranted)
			if strings.HasPrefix(r.Name, begun) && !sudo.IsFinished(r) && (verdict != v1alpha1.SudoApprove || approvable) {
				offered = append(offered, r.Name)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTenants offers the tenants whose groups of sudoers the user's rights name. The right to impersonate any
// group, which cluster admins have, names no tenant, so it adds none.
func (c *call) completeTenants(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if !c.connection.Changed("request-timeout") {
		*c.flags.Timeout = completionPatience
	}
	me, err := c.identifyUser(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	offered := slices.DeleteFunc(me.sudoTenants(), func(tenant string) bool { return !strings.HasPrefix(tenant, begun) })
	return offered, cobra.ShellCompDirectiveNoFileComp
}
