package sub

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// graftCommand is the command "graft NS PARENT".
func graftCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graft NAMESPACE PARENT",
		Short: "Make an existing namespace, with all that is below it, a sub-namespace (cluster admins)",
		Long: "Make an existing namespace, with all that is below it, a sub-namespace of PARENT. Then it is no root, and\n" +
			"references no template. It belongs to a SubNamespace in PARENT: if that is deleted, the namespace is deleted.\n" +
			"To place a namespace without a SubNamespace, use kubectl warren set. If the command is interrupted, run it again.",
		Example:           "  kubectl warren graft legacy payments",
		Args:              invocation.ExactlyAsUsage("a namespace and its new parent"),
		ValidArgsFunction: inv.CompleteFirst(2),
	}
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return graftSub(cmd.Context(), inv, args[0], args[1], c)
	}
	return change.ForAdmins(cmd)
}

func graftSub(ctx context.Context, inv *invocation.Invocation, name, parent string, c change.Options) error {
	if err := invocation.CheckNamespaces(name, parent); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	if err := checkGraft(ctx, api, name, parent); err != nil {
		return err
	}
	if err := awaitEnd(ctx, api, parent, name); err != nil {
		return err
	}
	namespace, changed, err := change.Relabel(ctx, api, name, c, func(now *metav1.PartialObjectMetadata) (change.Labels, error) {
		if now.DeletionTimestamp != nil {
			return nil, fmt.Errorf("namespace %s is being deleted", name)
		}
		above, bound := now.Labels[v1alpha1.LabelParent], now.Labels[v1alpha1.LabelBound] == v1alpha1.True
		if bound && above != "" && above != parent {
			return nil, fmt.Errorf("namespace %s belongs to SubNamespace %s/%s: use kubectl warren move %s %s", name, above,
				name, name, parent)
		}
		return change.Labels{
			v1alpha1.LabelType: "", v1alpha1.LabelTemplate: "", v1alpha1.LabelParent: parent, v1alpha1.LabelBound: v1alpha1.True,
		}, nil
	})
	if err != nil {
		return err
	}
	sub, err := gather.ReadSubNamespace(ctx, api, parent, name)
	if err != nil {
		return err
	}
	if sub == nil {
		changed = true
		if !c.IsRehearsed() {
			unwarned, err := inv.ConnectUnwarned() // the operator may not have seen the new labels yet
			if err != nil {
				return err
			}
			if err := c.ClientFor(unwarned).Create(ctx, New(parent, name, v1alpha1.SubNamespaceSpec{})); err != nil {
				if !c.IsStored() {
					return fmt.Errorf("the SubNamespace of namespace %s in %s would not be created: %w", name, parent, err)
				}
				return fmt.Errorf("namespace %s is below %s now, but its SubNamespace was not created; remove the cause and run the command "+
					"again: %w", name, parent, err)
			}
		}
	}
	return change.PrintRelabelled(inv, namespace, changed, c, "grafted")
}

// checkGraft returns an error where the graft would end halfway: no SubNamespace can be made, or a
// HierarchyConfiguration asks for another parent.
func checkGraft(ctx context.Context, api client.Reader, name, parent string) error {
	above, err := gather.ReadNamespace(ctx, api, parent)
	if err != nil {
		return err
	}
	if above.Labels[v1alpha1.LabelType] != v1alpha1.TypeRoot && above.Labels[v1alpha1.LabelParent] == "" {
		return fmt.Errorf("namespace %s is neither a root nor a sub-namespace", parent)
	}
	hc, err := gather.ReadHierarchy(ctx, api, name)
	if err != nil {
		return err
	}
	if hc != nil && hc.Spec.Parent != nil && *hc.Spec.Parent != "" && *hc.Spec.Parent != parent {
		return fmt.Errorf("%s is placed by its HierarchyConfiguration: use kubectl warren set %s --parent %s first", name,
			name, parent)
	}
	return nil
}
