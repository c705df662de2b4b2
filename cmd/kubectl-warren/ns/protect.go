package ns

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// protectCommand is the command "protect NS".
func protectCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "protect NAMESPACE",
		Short: "Keep a namespace out of every tree",
		Long: "Keep a namespace out of every tree: by the label " + v1alpha1.LabelProtected + ", until --off removes it.\n" +
			"Protect the platform's own namespaces. While the label is set, the policies let nobody place them in a tenant's tree, not even\n" +
			"with a stolen token of the operator.",
		Example:           "  kubectl warren protect monitoring\n  kubectl warren protect monitoring --off",
		Args:              invocation.ExactlyAsUsage("one namespace"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	off := cmd.Flags().Bool("off", false, "Take the protection off")
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return setProtected(cmd.Context(), inv, args[0], !*off, c)
	}
	return change.ForAdmins(cmd)
}

func setProtected(ctx context.Context, inv *invocation.Invocation, name string, on bool, c change.Options) error {
	if err := invocation.CheckNamespaces(name); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	operation, value := "protected", v1alpha1.True
	if !on {
		operation, value = "unprotected", ""
	}
	namespace, changed, err := change.Relabel(ctx, api, name, c, func(namespace *metav1.PartialObjectMetadata) (change.Labels, error) {
		if on && namespace.Labels[v1alpha1.LabelProtected] != v1alpha1.True && inTree(namespace) {
			return nil, fmt.Errorf("namespace %s belongs to a tree or is a template: take it out of the tree, or give it no type "+
				"(kubectl warren set-type %s none), then protect it", name, name)
		}
		return change.Labels{v1alpha1.LabelProtected: value}, nil
	})
	if err != nil {
		return err
	}
	return change.PrintRelabelled(inv, namespace, changed, c, operation)
}

// inTree reports whether a namespace is a root, a template or below another.
func inTree(namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Labels[v1alpha1.LabelType] != "" || namespace.Labels[v1alpha1.LabelParent] != ""
}
