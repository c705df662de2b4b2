package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// completionPatience bounds how long a press of the tab key may take.
const completionPatience = "3s"

// completeNamespaces offers the namespaces in trees that are not named yet; none where the user may not list namespaces.
func (p *plugin) completeNamespaces(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
	if !cmd.Flags().Changed("request-timeout") {
		*p.flags.Timeout = completionPatience
	}
	api, err := p.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	view, err := gather(cmd.Context(), api)
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
