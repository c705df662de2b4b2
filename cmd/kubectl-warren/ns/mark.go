package ns

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// markCommand is the command "mark NS PARENT".
func markCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark NAMESPACE PARENT",
		Short: "Allow a namespace that exists to join the tree of PARENT, once (cluster admins)",
		Long: "Allow a namespace that exists to join the tree of PARENT, once. Its annotation " + v1alpha1.AnnotationAdopt +
			" gets the UID of\n" +
			"that tree's LNamespace or, if the tree has none, of its root namespace. If a HierarchyConfiguration waits for this mark,\n" +
			"the operator carries it out at once.\n" +
			"To mark and place in one step: kubectl warren set NAMESPACE --parent PARENT.",
		Example:           "  kubectl warren mark legacy payments",
		Args:              invocation.ExactlyAsUsage("a namespace and the parent that it may get"),
		ValidArgsFunction: inv.CompleteFirst(2),
	}
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return markNamespace(cmd.Context(), inv, args[0], args[1], c)
	}
	return change.ForAdmins(cmd)
}

func markNamespace(ctx context.Context, inv *invocation.Invocation, name, parent string, c change.Options) error {
	if err := invocation.CheckNamespaces(name, parent); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	namespace, err := gather.ReadNamespace(ctx, api, name)
	if err != nil {
		return err
	}
	uid, err := change.TreeUID(ctx, api, parent)
	if err != nil {
		return err
	}
	changed, err := change.Mark(ctx, api, namespace, uid, c)
	if err != nil {
		return fmt.Errorf("marking namespace %s: %w", name, err)
	}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return change.PrintRelabelled(inv, namespace, changed, c, "marked")
}
