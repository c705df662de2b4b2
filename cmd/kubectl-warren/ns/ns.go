// Package ns is the commands about namespaces: to list one's own, and to show or set the type, the place and the
// protection of one.
package ns

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// Commands are the commands about namespaces.
func Commands(inv *invocation.Invocation) []*cobra.Command {
	return []*cobra.Command{listCommand(inv), setTypeCommand(inv), markCommand(inv), setCommand(inv), protectCommand(inv)}
}

// typeNone is the type of a namespace that is neither a root nor a template.
const typeNone = "none"

// setTypeCommand is the command "set-type NS TYPE".
func setTypeCommand(inv *invocation.Invocation) *cobra.Command {
	types := []string{v1alpha1.TypeRoot, v1alpha1.TypeTemplate, typeNone}
	cmd := &cobra.Command{
		Use:        "set-type NAMESPACE TYPE",
		SuggestFor: []string{"namespace"},
		Short:      "Make a namespace a root, a template, or neither (cluster admins)",
		Long:       "Make a namespace a root, a template, or neither (none): by its label " + v1alpha1.LabelType + ".",
		Example:    "  kubectl warren set-type base template",
		Args:       invocation.ExactlyAsUsage("a namespace and root, template or none"),
		ValidArgsFunction: func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(named) == 1 {
				return types, cobra.ShellCompDirectiveNoFileComp
			}
			return inv.CompleteFirst(1)(cmd, named, begun)
		},
	}
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(types, args[1]) {
			return fmt.Errorf("invalid type %q: must be root, template or none", args[1])
		}
		wanted := args[1]
		if wanted == typeNone {
			wanted = ""
		}
		return change.LabelNamespace(cmd.Context(), inv, args[0], change.Labels{v1alpha1.LabelType: wanted}, c)
	}
	return change.ForAdmins(cmd)
}
