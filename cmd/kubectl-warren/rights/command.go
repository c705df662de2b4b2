package rights

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// What the three commands print as JSON or YAML.
type (
	accessDocument struct {
		invocation.Document
		*Access
	}
	whoCanDocument struct {
		invocation.Document
		*WhoCan
	}
	whyDocument struct {
		invocation.Document
		*Why
	}
)

// systemUsage is the help of the flag --system.
const systemUsage = "Show the parts of Kubernetes itself too"

// AccessCommand returns the command "access TENANT".
func AccessCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access TENANT",
		Short: "Show everybody who has rights in a tenant's tree, and why",
		Long: "Show everybody who has rights in a tenant's tree, and why: its users, managers and sudoers, the subjects of other bindings of " +
			"the tree\n" +
			"or the whole cluster, and everybody who can take the token of a service account that is a sudoer.\n" +
			"The end of the output lists what you may not read; ask a cluster admin for that.",
		Example:           "  kubectl warren access payments\n  kubectl warren access payments -o wide",
		Args:              invocation.ExactlyAsUsage("one tenant"),
		ValidArgsFunction: completeTenant(inv),
	}
	everything := cmd.Flags().Bool("system", false, systemUsage)
	output := invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML,
		invocation.OutputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := invocation.CheckName("tenant", args[0]); err != nil {
			return err
		}
		reporter, err := NewReporter(inv)
		if err != nil {
			return err
		}
		found, err := reporter.Access(cmd.Context(), args[0], *everything)
		if err != nil {
			return err
		}
		if output.Value == invocation.OutputWide {
			return inv.PrintReport("", accessTable{found}, nil)
		}
		return inv.PrintReport(output.Value, found, accessDocument{invocation.DocumentOf("TenantAccess"), found})
	}
	return cmd
}

// WhoCanCommand returns the command "who-can VERB RESOURCE".
func WhoCanCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can VERB RESOURCE[/NAME]",
		Short: "Show who can do something, without sudo or with it",
		Long: "Show who can do something, without sudo or with it. Instead of a tenant's group of sudoers, the output names its sudoers.\n" +
			"Column SUDO has on-request for those who may ask for sudo, and until when they have it now.\n" +
			"The end of the output lists what you may not read.",
		Example: "  kubectl warren who-can delete secrets -n pay-web\n  kubectl warren who-can get pods --subresource log -n pay-web\n" +
			"  kubectl warren who-can update lns/payments",
		Annotations: map[string]string{invocation.UsesNamespace: "yes"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("name a verb and a resource: kubectl warren who-can VERB RESOURCE[/NAME]")
			}
			return nil
		},
		ValidArgsFunction: completeQuestion(inv, 0),
	}
	subresource := addSubresource(cmd)
	everything := cmd.Flags().Bool("system", false, systemUsage)
	output := invocation.AddFormat(cmd, "Output format")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		reporter, question, err := readQuestion(inv, cmd, args[0], args[1], *subresource)
		if err != nil {
			return err
		}
		found, err := reporter.WhoCan(cmd.Context(), question, *everything)
		if err != nil {
			return err
		}
		return inv.PrintReport(output.Value, found, whoCanDocument{invocation.DocumentOf("WhoCan"), found})
	}
	return cmd
}

// WhyCommand returns the command "why USER VERB RESOURCE".
func WhyCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why USER VERB RESOURCE[/NAME]",
		Short: "Show whether a user may do something, without sudo and with it, and why",
		Long: "Show whether a user may do something, without sudo and with it, and why. The API server gives the answer, if you may ask it.\n" +
			"Otherwise the answer follows from the RBAC objects that you may read.\n" +
			"The API server does not know who is in a group: name the groups of USER by --group, unless USER is yourself. The name of a\n" +
			"service account is system:serviceaccount:NAMESPACE:NAME.",
		Example: "  kubectl warren why bob delete secrets -n pay-web\n  kubectl warren why otto get pods -n pay-web --group pay-oncall\n" +
			"  kubectl warren why system:serviceaccount:ci:deployer create deployments.apps -n pay-web",
		Annotations: map[string]string{invocation.UsesNamespace: "yes"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 3 || args[0] == "" {
				return fmt.Errorf("name a user, a verb and a resource: kubectl warren why USER VERB RESOURCE[/NAME]")
			}
			return nil
		},
		ValidArgsFunction: completeQuestion(inv, 1),
	}
	groups := cmd.Flags().StringArray("group", nil, "Group that the user is in; can be repeated")
	subresource := addSubresource(cmd)
	output := invocation.AddFormat(cmd, "Output format")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		reporter, question, err := readQuestion(inv, cmd, args[1], args[2], *subresource)
		if err != nil {
			return err
		}
		person, err := reporter.WhoIs(cmd.Context(), args[0], *groups)
		if err != nil {
			return err
		}
		found, err := reporter.Why(cmd.Context(), person, question)
		if err != nil {
			return err
		}
		return inv.PrintReport(output.Value, found, whyDocument{invocation.DocumentOf("Why"), found})
	}
	return cmd
}

// WhoIs returns the identity of a user. If the caller asks about itself and names no groups, the caller's groups are
// added. Groups of sudoers, which the caller has by running this with sudo, are left out: the report has one case
// without sudo and one with it.
func (r *Reporter) WhoIs(ctx context.Context, name string, groups []string) (Identity, error) {
	caller, err := r.Caller(ctx)
	if err == nil && caller.User == name && len(groups) == 0 {
		groups = caller.Unraised().Groups
	}
	return Person(name, groups...), err
}

func addSubresource(cmd *cobra.Command) *string {
	return cmd.Flags().String("subresource", "", "Subresource, such as log or exec of pods")
}

// NewReporter returns a reporter for the caller of the plugin.
func NewReporter(inv *invocation.Invocation) (*Reporter, error) {
	api, err := inv.Connect()
	if err != nil {
		return nil, err
	}
	return &Reporter{API: api, Refused: failure.Refused, Tree: readTreeOf(api), Namespaced: inv.NamespacedResources}, nil
}

// readTreeOf returns a function for Reporter.Tree. It finds the root and the namespaces below it that the caller may
// read.
func readTreeOf(api client.Reader) func(context.Context, string) ([]string, []string, error) {
	return func(ctx context.Context, root string) (names, closed []string, err error) {
		var unseen []string
		view, err := gather.Forest(ctx, api)
		if failure.Refused(err) {
			view, closed, unseen, err = gather.Walk(ctx, api, []string{root})
		}
		var unread gather.UnseenError
		switch {
		case errors.As(err, &unread), len(unseen) > 0:
			return nil, []string{root}, nil
		case err != nil:
			return nil, nil, err
		}
		nodes, err := view.Below([]string{root})
		if err != nil {
			return nil, closed, nil //nolint:nilerr // there is no such namespace, or it is not the tenant's
		}
		for node := range tree.Existing(nodes) {
			names = append(names, node.Name)
		}
		return names, closed, nil
	}
}
