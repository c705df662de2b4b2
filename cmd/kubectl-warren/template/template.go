// Package template is the commands about templates and the namespaces that reference them.
package template

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trees"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Commands is the group of commands "template …".
func Commands(inv *invocation.Invocation) *cobra.Command {
	template := &cobra.Command{Use: "template", Short: "Work with templates"}
	template.AddCommand(listCommand(inv), setCommand(inv), unsetCommand(inv))
	return template
}

// listCommand is the command "template list [TEMPLATE…]".
func listCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "list [TEMPLATE…]",
		Short:             "Show the templates, and below each of them all that reference it",
		Example:           "  kubectl warren template list\n  kubectl warren template list guardrails -o name",
		ValidArgsFunction: inv.CompleteNamespaces,
	}
	output := trees.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return showTemplates(cmd.Context(), inv, names, output.Value)
	}
	return cmd
}

func showTemplates(ctx context.Context, inv *invocation.Invocation, names []string, format string) error {
	if err := invocation.CheckNamespaces(names...); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	view, err := gather.Forest(ctx, api)
	if failure.Refused(err) {
		return fmt.Errorf("you may not list namespaces, so the references to templates can't be found: ask a cluster admin")
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if n := view.Forest.Namespace(name); n != nil && view.Forest.KindOf(n) != forest.Template {
			return fmt.Errorf("namespace %s is no template", name)
		}
	}
	view.References = true
	return trees.Draw(inv, view, names, format, "No templates found.")
}

// setCommand is the command "template set NS TEMPLATE".
func setCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAMESPACE TEMPLATE",
		Short: "Make a namespace reference a template (cluster admins)",
		Long: "Make NAMESPACE reference TEMPLATE. NAMESPACE is a root, another template, or a namespace in no tree. For a tenant's root, the\n" +
			"command sets spec.template of the LNamespace.",
		Example:           "  kubectl warren template set payments base",
		Args:              invocation.ExactlyAsUsage("a namespace and a template"),
		ValidArgsFunction: inv.CompleteFirst(2),
	}
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := invocation.CheckNamespaces(args...); err != nil {
			return err
		}
		return referenceTemplate(cmd.Context(), inv, args[0], args[1], c)
	}
	return change.ForAdmins(cmd)
}

// unsetCommand is the command "template unset NS".
func unsetCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "unset NAMESPACE",
		Short:             "Remove a namespace's reference to its template (cluster admins)",
		Example:           "  kubectl warren template unset payments",
		Args:              invocation.ExactlyAsUsage("one namespace"),
		ValidArgsFunction: inv.CompleteFirst(1),
	}
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := invocation.CheckNamespaces(args...); err != nil {
			return err
		}
		return referenceTemplate(cmd.Context(), inv, args[0], "", c)
	}
	return change.ForAdmins(cmd)
}

// referenceTemplate makes a namespace reference a template, or none.
func referenceTemplate(ctx context.Context, inv *invocation.Invocation, name, template string, c change.Options) error {
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	namespace, err := gather.ReadNamespace(ctx, api, name)
	if err != nil {
		return err
	}
	tenant, err := gather.ReadTenant(ctx, api, name, namespace.Annotations[v1alpha1.AnnotationLNamespaceUID])
	if err != nil && !failure.Refused(err) {
		return err
	}
	if tenant == nil {
		return change.LabelNamespace(ctx, inv, name, change.Labels{v1alpha1.LabelTemplate: template}, c)
	}
	return referenceOf(ctx, inv, api, tenant, template, c)
}

// referenceOf makes a tenant reference a template by its LNamespace: the operator sets the root's label by it, and
// would revert a change of the label alone.
func referenceOf(ctx context.Context, inv *invocation.Invocation, api client.Client, tenant *v1alpha1.LNamespace, template string,
	c change.Options) error {
	operation := "configured"
	switch {
	case tenant.Spec.Template == template:
		operation = "unchanged"
	case c.IsRehearsed():
		tenant.Spec.Template = template
	default:
		value := &template
		if template == "" {
			value = nil
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": value}})
		if err != nil {
			return err
		}
		if err := c.ClientFor(api).Patch(ctx, tenant, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	tenant.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LNamespace"))
	return change.PrintDone(inv, tenant, c, operation)
}
