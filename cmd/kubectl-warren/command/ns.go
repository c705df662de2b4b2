package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// nsCommands is the group of commands "ns …".
func (p *plugin) nsCommands() *cobra.Command {
	ns := &cobra.Command{Use: "ns", Aliases: []string{"namespace"}, Short: "Work with one namespace"}
	ns.AddCommand(p.describeCommand(), p.setType())
	return ns
}

// typeNone is the type of a namespace that is neither a root nor a template.
const typeNone = "none"

// setType is the command "ns set-type NS TYPE".
func (p *plugin) setType() *cobra.Command {
	types := []string{v1alpha1.TypeRoot, v1alpha1.TypeTemplate, typeNone}
	cmd := &cobra.Command{
		Use:     "set-type NAMESPACE TYPE",
		Short:   "Make a namespace a root, a template, or neither (cluster admins)",
		Long:    "Make a namespace a root, a template, or neither (none): by its label " + v1alpha1.LabelType + ".",
		Example: "  kubectl warren ns set-type base template",
		Args:    exactlyAsUsage("a namespace and root, template or none"),
		ValidArgsFunction: func(cmd *cobra.Command, named []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(named) == 1 {
				return types, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completeFirst(1)(cmd, named, begun)
		},
	}
	c := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(types, args[1]) {
			return fmt.Errorf("invalid type %q: must be root, template or none", args[1])
		}
		wanted := args[1]
		if wanted == typeNone {
			wanted = ""
		}
		return p.labelNamespace(cmd.Context(), args[0], labels{v1alpha1.LabelType: wanted}, c)
	}
	return cmd
}

// labelNamespace sets labels of a namespace, or takes them off.
func (p *plugin) labelNamespace(ctx context.Context, name string, wanted labels, c change) error {
	if err := checkNamespaces(name); err != nil {
		return err
	}
	api, err := p.connect()
	if err != nil {
		return err
	}
	namespace, changed, err := relabelNamespace(ctx, api, name, c, func(*metav1.PartialObjectMetadata) (labels, error) { return wanted, nil })
	if err != nil {
		return err
	}
	return p.printRelabelled(namespace, changed, c, "labelled")
}
