package distribution

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// Command is the command "distribution", which only groups others.
func Command(inv *invocation.Invocation) *cobra.Command {
	group := &cobra.Command{
		Use: "distribution", SuggestFor: []string{"rdist"}, Short: "Show the state of ResourceDistributions, or what the operator would do",
	}
	list := &cobra.Command{
		Use: "list [NAME…]", Short: "Show the progress of ResourceDistributions",
		Example:           "  kubectl warren distribution list",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	listed := invocation.AddChoice(list, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML,
		invocation.OutputName, invocation.OutputWide)
	list.RunE = func(cmd *cobra.Command, names []string) error {
		all, err := findDistributions(cmd.Context(), inv, names)
		if err != nil {
			return err
		}
		return printList(inv, listed.Value, all)
	}
	describe := &cobra.Command{
		Use: "describe NAME", Short: "Show one ResourceDistribution with its conflicts and failures",
		Example: "  kubectl warren distribution describe settings",
		Args:    invocation.ExactlyAsUsage("one ResourceDistribution"), ValidArgsFunction: cobra.NoFileCompletions,
	}
	described := invocation.AddFormat(describe, "Output format")
	describe.RunE = func(cmd *cobra.Command, names []string) error {
		all, err := findDistributions(cmd.Context(), inv, names)
		if err != nil {
			return err
		}
		return inv.PrintReport(described.Value, description{&all[0]}, all[0])
	}
	group.AddCommand(list, describe, planCommand(inv))
	return group
}

func planCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan {NAME | -f FILE}",
		Short: "Show what the operator would do in which namespace, and do nothing",
		Long: "Show whether spec.targets selects every namespace, and what the operator would do in which, and do nothing.\n" +
			"The ResourceDistribution is NAME in the cluster, or that in FILE. You need the right to list namespaces, and\n" +
			"objects of the distributed kind in all namespaces; only metadata is read.",
		Example:           "  kubectl warren distribution plan regcred\n  kubectl warren distribution plan -f regcred.yaml",
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := invocation.AddFormat(cmd, "Output format")
	file := cmd.Flags().StringP("filename", "f", "", "A file with the ResourceDistribution; - is the standard input")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if (len(names) == 1) == (*file != "") || len(names) > 1 {
			return fmt.Errorf("name one ResourceDistribution, or give --filename (-f), not both")
		}
		return planDistribution(cmd.Context(), inv, names, *file, output.Value)
	}
	return cmd
}

// findDistributions reads what List does, as objects that can be printed: with their kind, and without managedFields.
func findDistributions(ctx context.Context, inv *invocation.Invocation, names []string) ([]v1alpha1.ResourceDistribution, error) {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return nil, err
	}
	all, err := List(ctx, api, names)
	for i := range all {
		all[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ResourceDistribution"))
		all[i].SetManagedFields(nil)
	}
	return all, err
}

func printList(inv *invocation.Invocation, format string, all []v1alpha1.ResourceDistribution) error {
	document := &v1alpha1.ResourceDistributionList{Items: all}
	document.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ResourceDistributionList"))
	switch format {
	case invocation.OutputName:
		for i := range all { // the printer takes no typed list
			if err := (&printers.NamePrinter{ShortOutput: true}).PrintObj(&all[i], inv.Streams.Out); err != nil {
				return err
			}
		}
		return nil
	case invocation.OutputWide:
		format = ""
	}
	if format == "" && len(all) == 0 {
		fmt.Fprintln(inv.Streams.ErrOut, "No ResourceDistributions found.")
		return nil
	}
	return inv.PrintReport(format, progress(all), document)
}

func planDistribution(ctx context.Context, inv *invocation.Invocation, names []string, file, format string) error {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return err
	}
	rd := &v1alpha1.ResourceDistribution{}
	if file != "" {
		if rd, err = readDistribution(inv, file); err != nil {
			return err
		}
		// Existing copies belong to the object of this name in the cluster. Its status records which namespaces the names in
		// spec.targets mean.
		if live, err := List(ctx, api, []string{rd.Name}); err == nil {
			rd.UID, rd.Status = live[0].UID, live[0].Status
		}
	} else {
		all, err := List(ctx, api, names)
		if err != nil {
			return err
		}
		rd = &all[0]
	}
	warnings, steps, err := Plan(ctx, api, rd)
	if err != nil {
		return err
	}
	found := plan{rd.Spec.ConflictPolicy, warnings, steps}
	return inv.PrintReport(format, found, planDocument{invocation.DocumentOf("DistributionPlan"), warnings, steps})
}

// planDocument is what plan prints as JSON or YAML.
type planDocument struct {
	invocation.Document
	Warnings []string `json:"warnings,omitempty"`
	Steps    []Step   `json:"steps"`
}

func readDistribution(inv *invocation.Invocation, file string) (*v1alpha1.ResourceDistribution, error) {
	data, err := inv.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the ResourceDistribution: %w", err)
	}
	rd := &v1alpha1.ResourceDistribution{}
	if err := yaml.UnmarshalStrict(data, rd); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if rd.Kind != "ResourceDistribution" || rd.Name == "" {
		return nil, fmt.Errorf("%s holds no ResourceDistribution with a name", file)
	}
	return rd, nil
}
