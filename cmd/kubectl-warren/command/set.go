package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// wishes are what the flags of set say.
type wishes struct {
	parent                     string
	root, cascading, forbidden bool
}

// setCommand is the command "set NS".
func (p *plugin) setCommand() *cobra.Command {
	w := &wishes{}
	cmd := &cobra.Command{
		Use:   "set NAMESPACE",
		Short: "Place a namespace in a tree, or let its deletion cascade, by its HierarchyConfiguration",
		Example: "  kubectl warren set legacy --parent payments\n  kubectl warren set legacy --root\n" +
			"  kubectl warren set payments --allow-cascading-deletion",
		Args:              exactlyAsUsage("one namespace"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVarP(&w.parent, "parent", "p", "", "Place it below this namespace")
	flags.BoolVarP(&w.root, "root", "r", false, "Make it a root")
	flags.BoolVarP(&w.cascading, "allow-cascading-deletion", "a", false, "Let its deletion delete the sub-namespaces below it")
	flags.BoolVarP(&w.forbidden, "forbid-cascading-deletion", "f", false, "Don't")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name { // as the plugin of the Hierarchical Namespace Controller spells them
		case "allowCascadingDeletion":
			name = "allow-cascading-deletion"
		case "forbidCascadingDeletion":
			name = "forbid-cascading-deletion"
		}
		return pflag.NormalizedName(name)
	})
	change := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fields, err := w.fields(cmd.Flags())
		if err != nil {
			return err
		}
		return p.setHierarchy(cmd.Context(), args[0], fields, change)
	}
	return cmd
}

// fields are the fields of the spec that the flags name, as JSON.
func (w *wishes) fields(flags *pflag.FlagSet) (map[string]any, error) {
	fields := map[string]any{}
	switch parent := flags.Changed("parent"); {
	case parent && w.root:
		return nil, fmt.Errorf("--parent and --root contradict each other: a root has no parent")
	case parent:
		if err := checkName("namespace", w.parent); err != nil {
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
		return nil, fmt.Errorf("say what to set: --parent NAME, --root, or --allow-cascading-deletion")
	}
	return fields, nil
}

func (p *plugin) setHierarchy(ctx context.Context, name string, fields map[string]any, c change) error {
	if err := checkNamespaces(name); err != nil {
		return err
	}
	api, err := p.connect()
	if err != nil {
		return err
	}
	hc, operation, err := writeHierarchy(ctx, api, name, fields, c)
	if err != nil {
		return err
	}
	return p.printDone(hc, c, operation)
}

// readHierarchy reads the HierarchyConfiguration of a namespace; nil if it has none.
func readHierarchy(ctx context.Context, api client.Reader, namespace string) (*v1alpha1.HierarchyConfiguration, error) {
	hc := &v1alpha1.HierarchyConfiguration{}
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.HierarchyConfigurationName}, hc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return hc, err
}

// writeHierarchy writes fields of the spec of a namespace's HierarchyConfiguration, which it makes where there is none, and says what
// was done. The object knows its kind.
func writeHierarchy(ctx context.Context, api client.Client, name string, fields map[string]any, c change) (
	hc *v1alpha1.HierarchyConfiguration, operation string, err error,
) {
	spec, err := json.Marshal(map[string]any{"spec": fields})
	if err != nil {
		return nil, "", err
	}
	if hc, err = readHierarchy(ctx, api, name); err != nil {
		return nil, "", err
	}
	absent := hc == nil
	if absent {
		hc = &v1alpha1.HierarchyConfiguration{}
		hc.Namespace, hc.Name = name, v1alpha1.HierarchyConfigurationName
	}
	before := hc.Spec.DeepCopy()
	if err := json.Unmarshal(spec, hc); err != nil {
		return nil, "", err
	}
	switch {
	case absent:
		operation = "created"
		if !c.isRehearsed() {
			err = c.clientFor(api).Create(ctx, hc)
		}
	case equality.Semantic.DeepEqual(*before, hc.Spec):
		operation = "unchanged"
	default:
		operation = "configured"
		if !c.isRehearsed() {
			err = c.clientFor(api).Patch(ctx, hc, client.RawPatch(types.MergePatchType, spec))
		}
	}
	hc.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"))
	return hc, operation, err
}
