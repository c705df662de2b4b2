package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/internal/forest"
)

// templateCommands is the group of commands "template …".
func (p *plugin) templateCommands() *cobra.Command {
	template := &cobra.Command{Use: "template", Short: "Work with templates"}
	template.AddCommand(p.templateList(), p.templateSet(), p.templateUnset())
	return template
}

// templateList is the command "template list [TEMPLATE…]".
func (p *plugin) templateList() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "list [TEMPLATE…]",
		Aliases:           []string{"ls"},
		Short:             "Show the templates, and below each of them all that reference it",
		ValidArgsFunction: p.completeNamespaces,
	}
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return p.showTemplates(cmd.Context(), names, output.value)
	}
	return cmd
}

func (p *plugin) showTemplates(ctx context.Context, names []string, format string) error {
	if err := checkNamespaces(names...); err != nil {
		return err
	}
	api, err := p.connect()
	if err != nil {
		return err
	}
	view, err := gatherForest(ctx, api)
	if failure.Refused(err) {
		return fmt.Errorf("you may not list namespaces: what references a template can't be seen otherwise")
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
	return p.drawTrees(view, names, format, "No templates found.")
}

// templateSet is the command "template set NS TEMPLATE".
func (p *plugin) templateSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "set NAMESPACE TEMPLATE",
		Short:             "Let a root, a template or a namespace in no tree reference a template (cluster admins)",
		Long:              "Let a root, a template or a namespace in no tree reference a template. That of a tenant's root is set on its LNamespace.",
		Example:           "  kubectl warren template set payments base",
		Args:              exactlyAsUsage("a namespace and a template"),
		ValidArgsFunction: p.completeFirst(2),
	}
	c := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkNamespaces(args...); err != nil {
			return err
		}
		return p.referenceTemplate(cmd.Context(), args[0], args[1], c)
	}
	return cmd
}

// templateUnset is the command "template unset NS".
func (p *plugin) templateUnset() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "unset NAMESPACE",
		Short:             "Let a namespace reference no template (cluster admins)",
		Example:           "  kubectl warren template unset payments",
		Args:              exactlyAsUsage("one namespace"),
		ValidArgsFunction: p.completeFirst(1),
	}
	c := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkNamespaces(args...); err != nil {
			return err
		}
		return p.referenceTemplate(cmd.Context(), args[0], "", c)
	}
	return cmd
}

// referenceTemplate has a namespace reference a template, or none.
func (p *plugin) referenceTemplate(ctx context.Context, name, template string, c change) error {
	api, err := p.connect()
	if err != nil {
		return err
	}
	namespace, err := readNamespace(ctx, api, name)
	if err != nil {
		return err
	}
	tenant, err := tenantOf(ctx, api, name, namespace.Annotations[v1alpha1.AnnotationLNamespaceUID])
	if err != nil && !failure.Refused(err) {
		return err
	}
	if tenant == nil {
		return p.labelNamespace(ctx, name, labels{v1alpha1.LabelTemplate: template}, c)
	}
	return p.referenceOf(ctx, api, tenant, template, c)
}

// referenceOf has a tenant reference a template: its root's label follows, and would be put back if that alone were changed.
func (p *plugin) referenceOf(ctx context.Context, api client.Client, tenant *v1alpha1.LNamespace, template string, c change) error {
	operation := "configured"
	switch {
	case tenant.Spec.Template == template:
		operation = "unchanged"
	case c.isRehearsed():
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
		if err := c.clientFor(api).Patch(ctx, tenant, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	tenant.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LNamespace"))
	return p.printDone(tenant, c, operation)
}

// tenantOf reads the LNamespace of this UID that made or adopted a root; nil where there is none.
func tenantOf(ctx context.Context, api client.Reader, root, uid string) (*v1alpha1.LNamespace, error) {
	if uid == "" {
		return nil, nil
	}
	tenant := &v1alpha1.LNamespace{}
	err := api.Get(ctx, client.ObjectKey{Name: root}, tenant)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(tenant.UID) != uid:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return tenant, nil
}
