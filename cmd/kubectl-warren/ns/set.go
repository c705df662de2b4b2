package ns

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// wishes has the values of the flags of set.
type wishes struct {
	parent                           string
	root, cascading, forbidden, wait bool
}

// setCommand is the command "set NS".
func setCommand(inv *invocation.Invocation) *cobra.Command {
	w := &wishes{}
	cmd := &cobra.Command{
		Use:   "set NAMESPACE",
		Short: "Place a namespace in a tree, or let its deletion cascade, by its HierarchyConfiguration",
		Long: "Place a namespace in a tree, or let its deletion cascade, by its HierarchyConfiguration. You need ClusterRole admin in the\n" +
			"namespace and above it, in the old place and in the new.\n" +
			"For a cluster admin, the command also prepares the place: if the parent is in no tree, it becomes a root.\n" +
			"With overlay standard, a namespace that is in no tree also gets the mark that it needs to join one.\n" +
			"After --parent or --root, the command waits for the operator's answer. Exit status 2 means that the request is\n" +
			"stored, but not carried out, or that the namespace is halted in its new place. The message says why.",
		Example: "  kubectl warren set legacy --parent payments\n  kubectl warren set legacy --root\n" +
			"  kubectl warren set payments --allow-cascading-deletion",
		Args:              invocation.ExactlyAsUsage("one namespace"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVarP(&w.parent, "parent", "p", "", "Place it below this namespace")
	flags.BoolVarP(&w.root, "root", "r", false, "Make it a root")
	flags.BoolVarP(&w.cascading, "allow-cascading-deletion", "a", false,
		"Let the deletion of it, or of a namespace below it, delete the bound sub-namespaces below")
	flags.BoolVarP(&w.forbidden, "forbid-cascading-deletion", "f", false, "Forbid what --allow-cascading-deletion allows")
	flags.BoolVar(&w.wait, "wait", true, "Wait until the operator has placed the namespace, or says why not")
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fields, err := w.buildFields(cmd.Flags())
		if err != nil {
			return err
		}
		return setHierarchy(cmd.Context(), inv, args[0], fields, w.wait, c)
	}
	return cmd
}

// buildFields are the fields of the spec that the flags name, as JSON.
func (w *wishes) buildFields(flags *pflag.FlagSet) (map[string]any, error) {
	fields := map[string]any{}
	switch parent := flags.Changed("parent"); {
	case parent && w.root:
		return nil, fmt.Errorf("--parent and --root contradict each other: a root has no parent")
	case parent:
		if err := invocation.CheckName("namespace", w.parent); err != nil {
			return nil, fmt.Errorf("--parent: %w", err)
		}
		fields["parent"] = w.parent
	case w.root:
		fields["parent"] = ""
	}
	allow, forbid := flags.Changed("allow-cascading-deletion"), flags.Changed("forbid-cascading-deletion")
	switch {
	case allow && forbid:
		return nil, fmt.Errorf("--allow-cascading-deletion and --forbid-cascading-deletion contradict each other: give one")
	case allow:
		fields["allowCascadingDeletion"] = w.cascading
	case forbid:
		fields["allowCascadingDeletion"] = !w.forbidden
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("say what to set: --parent NAME, --root, --allow-cascading-deletion or --forbid-cascading-deletion")
	}
	return fields, nil
}

func setHierarchy(ctx context.Context, inv *invocation.Invocation, name string, fields map[string]any, wait bool,
	c change.Options) error {
	if err := invocation.CheckNamespaces(name); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	parent, asks := fields["parent"].(string)
	p := &placement{inv: inv, api: api, change: c, name: name, parent: parent}
	if asks {
		if err := p.preparePlace(ctx); err != nil {
			return err
		}
	}
	hc, operation, err := change.WriteHierarchy(ctx, api, name, fields, c)
	if err != nil {
		return p.takeBack(ctx, err)
	}
	if err := change.PrintDone(inv, hc, c, operation); err != nil || !asks || !wait || !c.IsStored() {
		return err
	}
	return p.waitForAnswer(ctx, hc.Generation)
}
