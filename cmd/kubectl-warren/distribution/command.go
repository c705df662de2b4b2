package distribution

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
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
		RunE: func(cmd *cobra.Command, names []string) error {
			return showDistributions(cmd.Context(), inv, names, WriteTable)
		},
	}
	describe := &cobra.Command{
		Use: "describe NAME", Short: "Show one ResourceDistribution with its conflicts and failures",
		Example: "  kubectl warren distribution describe settings",
		Args:    invocation.ExactlyAsUsage("one ResourceDistribution"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, names []string) error {
			return showDistributions(cmd.Context(), inv, names, func(w io.Writer, all []v1alpha1.ResourceDistribution) error {
				return WriteDescription(w, &all[0])
			})
		},
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
	file := cmd.Flags().StringP("filename", "f", "", "A file with the ResourceDistribution; - is the standard input")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if (len(names) == 1) == (*file != "") || len(names) > 1 {
			return fmt.Errorf("name one ResourceDistribution, or give --filename (-f), not both")
		}
		return planDistribution(cmd.Context(), inv, names, *file)
	}
	return cmd
}

func showDistributions(ctx context.Context, inv *invocation.Invocation, names []string,
	write func(io.Writer, []v1alpha1.ResourceDistribution) error) error {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return err
	}
	all, err := List(ctx, api, names)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(inv.Streams.ErrOut, "No ResourceDistributions found.")
		return nil
	}
	return write(inv.Streams.Out, all)
}

func planDistribution(ctx context.Context, inv *invocation.Invocation, names []string, file string) error {
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
	return WritePlan(inv.Streams.Out, rd, warnings, steps)
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
