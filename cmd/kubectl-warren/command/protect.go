package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// protect is the command "protect NS".
func (p *plugin) protect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "protect NAMESPACE",
		Short: "Keep a namespace out of every tree, for good",
		Long: "Keep a namespace out of every tree, for good: by the label " + v1alpha1.LabelProtected + ", which the policies know.\n" +
			"Protect the platform's own namespaces: nothing, not even a stolen token of the operator, can then place them in a tenant's tree.",
		Example: "  kubectl warren protect monitoring\n  kubectl warren protect monitoring --off",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one namespace, not %d: kubectl warren protect NAMESPACE", len(args))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	off := cmd.Flags().Bool("off", false, "Take the protection off")
	change := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.setProtected(cmd.Context(), args[0], !*off, change)
	}
	return cmd
}

func (p *plugin) setProtected(ctx context.Context, name string, on bool, c change) error {
	if err := checkName("namespace", name); err != nil {
		return err
	}
	api, err := p.connect()
	if err != nil {
		return err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := api.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return err
	}
	operation, value := "protected", any(v1alpha1.True)
	if !on {
		operation, value = "unprotected", nil
	}
	_, labelled := namespace.Labels[v1alpha1.LabelProtected]
	if unchanged := on && namespace.Labels[v1alpha1.LabelProtected] == v1alpha1.True || !on && !labelled; unchanged {
		return p.printDone(namespace, c, "unchanged")
	}
	if on && inTree(namespace) {
		return fmt.Errorf("namespace %s belongs to a tree: take it out first, then protect it", name)
	}
	if c.rehearsed() {
		return p.printDone(namespace, c, operation)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelProtected: value}}})
	if err != nil {
		return err
	}
	if err := c.client(api).Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	return p.printDone(namespace, c, operation)
}

// inTree says whether a namespace is a root, a template or below another.
func inTree(namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Labels[v1alpha1.LabelType] != "" || namespace.Labels[v1alpha1.LabelParent] != ""
}
