package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/printers"
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
	dryRun := addChoice(cmd, "dry-run", "", dryRunNone, "client: only print what would be done; server: send it, but don't store it", dryRunNone, dryRunClient, dryRunServer)
	output := addChoice(cmd, "output", "o", "", "Output format", outputJSON, outputYAML, outputName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.setProtected(cmd.Context(), args[0], !*off, dryRun.value, output.value)
	}
	return cmd
}

func (p *plugin) setProtected(ctx context.Context, name string, on bool, dryRun, format string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("invalid namespace name %q: must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end", name)
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
		return p.printDone(namespace, format, "unchanged")
	}
	if on && inTree(namespace) {
		return fmt.Errorf("namespace %s belongs to a tree: take it out first, then protect it", name)
	}
	var options []client.PatchOption
	switch dryRun {
	case dryRunClient:
		return p.printDone(namespace, format, operation+" (dry run)")
	case dryRunServer:
		operation += " (server dry run)"
		options = append(options, client.DryRunAll)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelProtected: value}}})
	if err != nil {
		return err
	}
	if err := api.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), options...); err != nil {
		return err
	}
	return p.printDone(namespace, format, operation)
}

// inTree says whether a namespace is a root, a template or below another.
func inTree(namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Labels[v1alpha1.LabelType] != "" || namespace.Labels[v1alpha1.LabelParent] != ""
}

// printDone prints what was done to an object, or the object.
func (p *plugin) printDone(object *metav1.PartialObjectMetadata, format, operation string) error {
	var text bytes.Buffer
	var err error
	switch format {
	case outputJSON, outputYAML:
		object.ManagedFields = nil
		err = writeAs(&text, format, object)
	default:
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err = (&printers.NamePrinter{ShortOutput: format == outputName, Operation: operation}).PrintObj(object, &text)
	}
	if err == nil {
		_, err = text.WriteTo(p.streams.Out)
	}
	return err
}
