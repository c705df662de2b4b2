package sudo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// asking has the flags of the commands about SudoRequests.
type asking struct {
	duration                        string
	group, comment                  string
	breakGlass, wait                bool
	onlyMine, onlyPending, watching bool
}

// buildRequestCommands returns the commands by which people ask for sudo, and decide on that.
func (c *call) buildRequestCommands() []*cobra.Command {
	a := &asking{}
	ask := &cobra.Command{
		Use: "request --reason TEXT", Short: "Ask for sudo in a tenant for a time", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.ask(cmd.Context(), a) },
	}
	ask.Flags().StringVar(&a.duration, "for", "1h", "How long, from the grant on")
	ask.Flags().BoolVar(&a.breakGlass, "break-glass", false,
		"Do without approval, where the tenant allows that; a Warning and an alert follow")
	ask.Flags().BoolVar(&a.wait, "wait", false, "Wait until sudo is granted, or refused")
	list := &cobra.Command{
		Use: "list", Short: "List the requests of a tenant", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listRequests(cmd.Context(), a) },
	}
	list.Flags().BoolVar(&a.onlyMine, "mine", false, "Only your own")
	list.Flags().BoolVar(&a.onlyPending, "pending", false, "Only those that wait for approvals")
	list.Flags().BoolVarP(&a.watching, "watch", "w", false, "Print each change, too")
	decide := func(use, short string, args cobra.PositionalArgs, verdict v1alpha1.SudoVerdict) *cobra.Command {
		command := &cobra.Command{Use: use, Short: short, Args: args, ValidArgsFunction: c.completeRequests(verdict),
			RunE: func(cmd *cobra.Command, names []string) error {
				return c.decide(cmd.Context(), a, verdict, strings.Join(names, ""))
			}}
		command.Flags().StringVar(&a.comment, "comment", "", "For the record")
		return command
	}
	all := []*cobra.Command{
		ask,
		decide("approve NAME", "Approve a request", needName, v1alpha1.SudoApprove),
		decide("deny NAME", "Refuse a request, or end what was granted", needName, v1alpha1.SudoDeny),
		decide("end [NAME]", "End sudo before its time, or take back a request; without NAME, your only one", cobra.MaximumNArgs(1),
			v1alpha1.SudoEnd),
		list,
	}
	for _, command := range all {
		flags := command.Flags()
		flags.SortFlags = false
		flags.StringVar(&c.tenant, flagTenant, "", "The tenant; without it, that of the namespace of -n or of the context")
		if command == ask {
			flags.StringVar(&c.reason, flagReason, "", "Why, for the approvers and for the record: 8 to 1024 characters")
		}
		if command != list {
			flags.StringVar(&a.group, "group", "",
				"The group by which you may do so; without it, the operator's webhook finds the group")
		}
		flags.AddFlagSet(c.connection)
		command.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
			return fmt.Errorf("%w: see kubectl sudo %s --help", err, cmd.Name())
		})
		command.SilenceErrors, command.SilenceUsage, command.DisableFlagsInUseLine = true, true, true
	}
	return all
}

// needName checks that a command has one argument, the name of a request.
func needName(cmd *cobra.Command, names []string) error {
	if len(names) != 1 {
		return fmt.Errorf("kubectl sudo %s takes the name of one request, and %d are given: kubectl sudo list has the names", cmd.Name(),
			len(names))
	}
	return nil
}

// isRequestCommand reports whether a word is a command about requests, and no COMMAND of kubectl.
func isRequestCommand(word string) bool {
	return slices.Contains([]string{"request", "approve", "deny", "end", "list"}, word)
}

// findRoot returns the tenant that a command about requests is for. Whoever may ask for sudo needn't be able to read any namespace.
func (c *call) findRoot(ctx context.Context) (string, error) {
	if _, err := c.leadingFlags(); err != nil {
		return "", err
	}
	if c.tenant != "" {
		return c.tenant, nil
	}
	tenant, err := c.tenantOfTarget(ctx, nil)
	if err != nil {
		return "", err
	}
	if tenant == "" {
		return "", errors.New("no tenant is named: add --tenant TENANT")
	}
	return tenant, nil
}

// beginRequest returns what every command about requests needs: a client, the user's name, and the tenant.
func (c *call) beginRequest(ctx context.Context) (api client.Client, me, tenant string, err error) {
	if tenant, err = c.findRoot(ctx); err != nil {
		return nil, "", "", err
	}
	if api, err = c.buildClient(nobody); err != nil {
		return nil, "", "", err
	}
	self, err := ownrights.Identify(ctx, api)
	return api, self.Username, tenant, err
}

// ask makes a request.
func (c *call) ask(ctx context.Context, a *asking) error {
	if strings.TrimSpace(c.reason) == "" {
		return errors.New("--reason is missing: say why, for the approvers and for the record")
	}
	api, me, tenant, err := c.beginRequest(ctx)
	if err != nil {
		return err
	}
	r := &v1alpha1.SudoRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, GenerateName: "sudo-"},
		Spec: v1alpha1.SudoRequestSpec{User: me, Group: a.group, Reason: c.reason, Duration: v1alpha1.SudoDuration(a.duration),
			BreakGlass: a.breakGlass, Decisions: []v1alpha1.SudoDecision{}},
	}
	if err := api.Create(ctx, r); err != nil {
		return fmt.Errorf("asking for sudo in %s: %w", tenant, err)
	}
	terminal.Fprintf(c.streams.Out, "%s asks for sudo in %s for %s. To approve: kubectl sudo approve %s --tenant %s\n",
		me, tenant, a.duration, r.Name, tenant)
	if !a.wait {
		return nil
	}
	return c.waitForGrant(ctx, api, r)
}

// lookPause is the time between two looks at a request.
const lookPause = time.Second

// waitForGrant returns when a request is in force, and an error if it never will be. It prints each new reason why it is not.
func (c *call) waitForGrant(ctx context.Context, api client.Client, r *v1alpha1.SudoRequest) error {
	for last := ""; ; {
		if err := api.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return fmt.Errorf("reading SudoRequest %s: %w", r.Name, err)
		}
		active := v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive)
		switch {
		case active == nil:
		case active.Status == metav1.ConditionTrue:
			terminal.Fprintf(c.streams.Out, "granted until %s: kubectl sudo --tenant %s COMMAND\n", describeEnd(r), r.Namespace)
			return nil
		case sudo.IsFinished(r):
			return fmt.Errorf("not granted: %s: %s", active.Reason, active.Message)
		case active.Message != last:
			last = active.Message
			terminal.Fprintf(c.streams.ErrOut, "%s: %s\n", active.Reason, active.Message)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookPause):
		}
	}
}

func describeEnd(r *v1alpha1.SudoRequest) string {
	if r.Status.EndTime == nil {
		return ""
	}
	return r.Status.EndTime.UTC().Format(time.RFC3339)
}

// describeState is the reason of condition Active.
func describeState(r *v1alpha1.SudoRequest) string {
	active := v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive)
	if active == nil {
		return "New"
	}
	return cmp.Or(active.Reason, "New")
}
