package sub

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// cutCommand is the command "cut NAME".
func cutCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cut NAME",
		Short: "Make a sub-namespace the root of a tree of its own, with all that is below it (cluster admins)",
		Long: "Make a sub-namespace the root of a tree of its own, with all that is below it. If it is bound, its SubNamespace is deleted;\n" +
			"the namespace stays. The namespaces of the new tree lose all that they inherited from the old one, also the rights of the\n" +
			"tenant's people.\n" +
			"If the command is interrupted, the old SubNamespace may be left, with reason Conflict: kubectl warren delete NAME -n PARENT\n" +
			"deletes it and keeps the namespace.",
		Example:           "  kubectl warren cut pay-web",
		Args:              invocation.ExactlyAsUsage("one sub-namespace"),
		ValidArgsFunction: inv.CompleteFirst(1),
	}
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return cutSub(cmd.Context(), inv, args[0], c)
	}
	return change.ForAdmins(cmd)
}

func cutSub(ctx context.Context, inv *invocation.Invocation, name string, c change.Options) error {
	if err := invocation.CheckNamespaces(name); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	var owner string // the namespace of the SubNamespace that owns it; "" if none
	namespace, changed, err := change.Relabel(ctx, api, name, c, func(now *metav1.PartialObjectMetadata) (change.Labels, error) {
		owner = ""
		if now.Labels[v1alpha1.LabelType] == v1alpha1.TypeRoot && now.Labels[v1alpha1.LabelParent] == "" {
			return nil, nil
		}
		parent, bound, err := parentOf(now)
		switch {
		case err != nil:
			return nil, err
		case bound:
			owner = parent
		default:
			if err := checkUnplaced(ctx, api, name, "--root"); err != nil {
				return nil, err
			}
		}
		return change.Labels{v1alpha1.LabelParent: "", v1alpha1.LabelBound: "", v1alpha1.LabelType: v1alpha1.TypeRoot}, nil
	})
	if err != nil {
		return err
	}
	if owner != "" && c.IsStored() {
		if err := deleteReplacedSub(ctx, api, owner, name); err != nil {
			return err
		}
	}
	return change.PrintRelabelled(inv, namespace, changed, c, "cut")
}
