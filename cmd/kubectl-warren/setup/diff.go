package setup

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/impersonation"
	"github.com/warren-tenancy/warren/internal/preview"
)

// diffDocument is what "config diff" prints as JSON or YAML.
type diffDocument struct {
	invocation.Document
	Counts []preview.Count `json:"counts"`
	// AcceptRemovals is what the file must say where the operator refuses it for what it takes away.
	AcceptRemovals string `json:"acceptRemovals"`
	*preview.Plan
}

// diffCommand is the command "config diff FILE".
func diffCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Show what the operator would write if it read this file, and write nothing",
		Long: "Show how many Namespaces, RBAC objects and copies of which tenant the operator would write if it read this file, and write nothing; -o wide\n" +
			"shows each write with its reason. You need to list namespaces, kinds of RBAC and every configured kind, Secrets too: run it as a cluster admin.\n" +
			"FILE can be - for standard input.",
		Example: "  kubectl warren config diff config.yaml\n  kubectl warren config diff config.yaml -o wide",
		Args:    invocation.ExactlyAsUsage("one file"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	operator := invocation.AddOperatorNamespace(cmd)
	output := invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML, invocation.OutputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data, err := inv.ReadFile(args[0])
		if err != nil {
			return err
		}
		c, err := config.Parse(args[0], data)
		if err != nil {
			return invocation.Problems(strings.Split(err.Error(), "\n"))
		}
		plan, err := makePlan(cmd.Context(), inv, c, *operator)
		switch {
		case failure.Refused(err):
			return fmt.Errorf("you may not read what the operator reads; ask a cluster admin: %w", err)
		case err != nil:
			return err
		case output.Value == invocation.OutputWide:
			return inv.PrintReport("", report{plan, plan.WriteTable, c.RemovalsHash()}, nil)
		}
		return inv.PrintReport(output.Value, report{plan, plan.WriteCounts, c.RemovalsHash()},
			diffDocument{invocation.DocumentOf("ConfigurationDiff"), plan.Counts(), c.RemovalsHash(), plan})
	}
	return cmd
}

// makePlan plans with the caller's rights.
func makePlan(ctx context.Context, inv *invocation.Invocation, c *config.OperatorConfiguration, operatorNamespace string) (*preview.Plan, error) {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return nil, err
	}
	cfg, err := inv.RESTConfig()
	if err != nil {
		return nil, err
	}
	probe, err := impersonation.NewProbeOfAnybody(cfg, api)
	if err != nil {
		return nil, err
	}
	return preview.Make(ctx, preview.Options{API: api, Config: c, OperatorNamespace: operatorNamespace, Probe: probe})
}

// report is a plan as a table: of its writes, or of how many there are.
type report struct {
	plan           *preview.Plan
	writeTable     func(io.Writer) error
	acceptRemovals string
}

// Write writes the table, and below it what the file must say where the operator refuses it.
func (r report) Write(w io.Writer) error {
	if err := r.writeTable(w); err != nil || r.plan.Sum().Deletes == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "If the operator refuses this file because it takes away too much, and that is meant, add to it: acceptRemovals: %q\n", r.acceptRemovals)
	return err
}
