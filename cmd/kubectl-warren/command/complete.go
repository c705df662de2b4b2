package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// completionPatience bounds how long a press of the tab key may take.
const completionPatience = "3s"

// completeFirst offers the namespaces in trees for the first arguments of a command.
func (p *plugin) completeFirst(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(named) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.completeNamespaces(cmd, named, begun)
	}
}

// completeParent offers the namespaces in trees for the second argument; the first is a new name.
func (p *plugin) completeParent(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(named) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeNamespaces(cmd, named, begun)
}

// completeNamespaces offers the namespaces in trees that are not named yet; none where the user may not list namespaces.
func (p *plugin) completeNamespaces(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
	if !cmd.Flags().Changed("request-timeout") {
		*p.flags.Timeout = completionPatience
	}
	api, err := p.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	view, err := gatherForest(cmd.Context(), api)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for node := range tree.Existing(view.All()) {
		if strings.HasPrefix(node.Name, begun) && !slices.Contains(named, node.Name) {
			names = append(names, node.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
