package sub

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/forest"
)

// deletion has the values of the flags of delete.
type deletion struct {
	cascade, wait bool
	change        change.Options
}

// deleteCommand is the command "delete NAME".
func deleteCommand(inv *invocation.Invocation) *cobra.Command {
	d := &deletion{}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a sub-namespace by its SubNamespace",
		Long: "Delete a sub-namespace by its SubNamespace. --namespace names the parent; without it, the parent is read from the label of\n" +
			"the namespace. With --namespace, NAME may also be a SubNamespace that has no namespace. You need ClusterRole admin in the parent.\n" +
			"--cascade with --dry-run=server is judged without the permission that --cascade would set, because that is not stored.",
		Example:           "  kubectl warren delete pay-web --wait\n  kubectl warren delete pay-web -n payments --cascade",
		Annotations:       map[string]string{invocation.UsesNamespace: "yes"},
		Args:              invocation.ExactlyAsUsage("one sub-namespace"),
		ValidArgsFunction: inv.CompleteFirst(1),
	}
	cmd.Flags().BoolVarP(&d.cascade, "cascade", "a", false,
		"First set allowCascadingDeletion in the HierarchyConfiguration of NAME: bound sub-namespaces below are deleted, too")
	cmd.Flags().BoolVar(&d.wait, "wait", false, "Return when the namespace is gone, and say what it still holds")
	d.change = change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return deleteSub(cmd.Context(), inv, *inv.Flags.Namespace, args[0], d)
	}
	return cmd
}

func deleteSub(ctx context.Context, inv *invocation.Invocation, parent, name string, d *deletion) error {
	names := []string{name}
	if parent != "" {
		names = append(names, parent)
	}
	if err := invocation.CheckNamespaces(names...); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	sub, owned, err := findSub(ctx, api, parent, name)
	if err != nil {
		return err
	}
	if d.cascade && owned != nil {
		if err := letCascade(ctx, inv, api, name, d.change); err != nil {
			return err
		}
	}
	if d.change.IsRehearsed() {
		return change.PrintDone(inv, sub, d.change, "deleted")
	}
	if err := d.change.ClientFor(api).Delete(ctx, sub, client.Preconditions{UID: &sub.UID}); err != nil {
		return err
	}
	if d.wait && d.change.IsStored() {
		if err := awaitGone(ctx, api, sub, owned, inv.Streams.ErrOut); err != nil {
			return err
		}
	}
	return change.PrintDone(inv, sub, d.change, "deleted")
}

// findSub finds the SubNamespace of a namespace: in parent or, if that is "", in the parent that the label names. It
// returns the namespace too; nil if that SubNamespace doesn't own it, or if the user may not read it.
func findSub(ctx context.Context, api client.Reader,
	parent, name string) (*v1alpha1.SubNamespace, *metav1.PartialObjectMetadata, error) {
	namespace, err := gather.ReadNamespace(ctx, api, name)
	switch {
	case (apierrors.IsNotFound(err) || failure.Refused(err)) && parent == "":
		return nil, nil, fmt.Errorf("namespace %s does not exist, or you may not read it: name the parent of its SubNamespace with --namespace",
			name)
	case apierrors.IsNotFound(err), failure.Refused(err):
		namespace = nil
	case err != nil:
		return nil, nil, err
	default:
		above, bound, err := parentOf(namespace)
		switch {
		case parent == "" && err != nil:
			return nil, nil, err
		case parent == "" && !bound:
			return nil, nil, fmt.Errorf("namespace %s is not bound: it is only placed below %s, and no SubNamespace owns it",
				name, above)
		case parent == "":
			parent = above
		case parent != above || !bound:
			namespace = nil
		}
	}
	sub, err := gather.ReadSubNamespace(ctx, api, parent, name)
	if err == nil && sub == nil {
		err = describeMissingSub(namespace, parent, name)
	}
	return sub, namespace, err
}

// describeMissingSub says that there is no SubNamespace, and what to do about its namespace; that may be nil.
func describeMissingSub(namespace *metav1.PartialObjectMetadata, parent, name string) error {
	switch {
	case namespace == nil:
		return fmt.Errorf("there is no SubNamespace %s in namespace %s", name, parent)
	case namespace.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted already: kubectl warren describe %s shows what it still holds", name, name)
	}
	return fmt.Errorf("namespace %s is %s; then give this command again", name, forest.MissingSub(parent, name))
}

// letCascade sets allowCascadingDeletion on a namespace and prints that at once: the field stays set even if the
// deletion fails.
func letCascade(ctx context.Context, inv *invocation.Invocation, api client.Client, name string,
	c change.Options) error {
	hc, operation, err := change.WriteHierarchy(ctx, api, name, map[string]any{"allowCascadingDeletion": true}, c)
	if err != nil {
		return err
	}
	terminal.Fprintf(inv.Streams.ErrOut, "allowCascadingDeletion of HierarchyConfiguration %s/%s: %s\n", hc.Namespace, hc.Name,
		c.DescribeDone(operation))
	if !c.IsStored() {
		return nil
	}
	return awaitCascading(ctx, api, name)
}
