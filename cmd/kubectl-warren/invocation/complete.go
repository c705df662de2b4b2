package invocation

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// completionPatience is the timeout of each request that a press of the tab key causes.
const completionPatience = "3s"

// BoundCompletion sets the timeout of requests to completionPatience, unless the user set --request-timeout.
func (inv *Invocation) BoundCompletion(cmd *cobra.Command) {
	if !cmd.Flags().Changed("request-timeout") {
		*inv.Flags.Timeout = completionPatience
	}
}

// CompleteFirst offers the namespaces in trees for the first arguments of a command; most is the number of these
// arguments.
func (inv *Invocation) CompleteFirst(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(named) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return inv.CompleteNamespaces(cmd, named, begun)
	}
}

// CompleteNamespaces offers the namespaces in trees that are not named yet. A user who may not list namespaces is
// offered those that ns shows.
func (inv *Invocation) CompleteNamespaces(cmd *cobra.Command, named []string,
	begun string) ([]string, cobra.ShellCompDirective) {
	return inv.completeNodes(cmd, named, begun, func(*tree.Node) bool { return true })
}

// CompleteRoots offers the roots of trees, as values of --tenant.
func (inv *Invocation) CompleteRoots(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return inv.completeNodes(cmd, nil, begun, func(node *tree.Node) bool { return node.Type == tree.TypeRoot })
}

func (inv *Invocation) completeNodes(cmd *cobra.Command, named []string, begun string,
	isOffered func(*tree.Node) bool) ([]string, cobra.ShellCompDirective) {
	inv.BoundCompletion(cmd)
	api, err := inv.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	view, err := gather.Forest(cmd.Context(), api)
	if failure.Refused(err) {
		view, err = inv.findOwnForest(cmd.Context(), api)
	}
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for node := range tree.Existing(view.All()) {
		if isOffered(node) && strings.HasPrefix(node.Name, begun) && !slices.Contains(named, node.Name) {
			names = append(names, node.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// findOwnForest reads the trees that a caller can find who may not list namespaces.
func (inv *Invocation) findOwnForest(ctx context.Context, api client.Client) (tree.View, error) {
	tops, err := inv.FindTops(ctx, api)
	if err != nil {
		return tree.View{}, err
	}
	view, _, _, err := gather.WalkFound(ctx, api, tops)
	return view, err
}
