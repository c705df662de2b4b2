package setup

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/preview"
)

// diffDocument is what "config diff" prints as JSON or YAML.
type diffDocument struct {
	invocation.Document
	Counts []preview.Count `json:"counts"`
	// HeldBack is why the operator would not accept this file. AcceptRemovals is the value of acceptRemovals with which it
	// would.
	HeldBack       string `json:"heldBack,omitempty"`
	AcceptRemovals string `json:"acceptRemovals"`
	*preview.Plan
}

// diffCommand is the command "config diff FILE".
func diffCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Show what the operator would write if it read this file, and write nothing",
		Long: "Show, for each tenant, how many Namespaces and copies the operator would write if it read this file, and write nothing.\n" +
			"Also show whether the operator would hold the file back. With -o wide, show each write with its reason.\n" +
			"You need the right to list namespaces and Warren's own kinds, and to read the file in force. A kind\n" +
			"that you may not list is left out, and a note says so: run it as a cluster admin. FILE can be - for standard input.",
		Example: "  kubectl warren config diff config.yaml\n  kubectl warren config diff config.yaml -o wide",
		Args:    invocation.ExactlyAsUsage("one file"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	operator := invocation.AddOperatorNamespace(cmd)
	output := invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML,
		invocation.OutputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		data, err := inv.ReadFile(args[0])
		if err != nil {
			return err
		}
		c, err := configfile.Parse(args[0], data)
		if err != nil {
			return invocation.Problems(strings.Split(err.Error(), "\n"))
		}
		plan, heldBack, err := makePlan(cmd.Context(), inv, c, *operator)
		switch {
		case failure.Refused(err):
			return fmt.Errorf("you may not read what the operator reads; ask a cluster admin: %w", err)
		case err != nil:
			return err
		case output.Value == invocation.OutputWide:
			return inv.PrintReport("", report{plan.WriteTable, heldBack}, nil)
		}
		return inv.PrintReport(output.Value, report{plan.WriteCounts, heldBack},
			diffDocument{invocation.DocumentOf("ConfigurationDiff"), plan.Counts(), heldBack, configfile.RemovalsHash(c), plan})
	}
	return cmd
}

// makePlan plans with the caller's rights. heldBack is why the operator would not accept this file in place of the one
// in force; "" if it would.
func makePlan(ctx context.Context, inv *invocation.Invocation, c *config.OperatorConfiguration,
	operatorNamespace string) (plan *preview.Plan, heldBack string, err error) {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return nil, "", err
	}
	if plan, err = preview.Make(ctx, preview.Options{API: api, Config: c, OperatorNamespace: operatorNamespace}); err != nil {
		return nil, "", err
	}
	_, text, err := gather.ReadStoredConfig(ctx, api, operatorNamespace)
	if inForce := configfile.ParseRecorded([]byte(text)); err == nil && inForce != nil {
		heldBack, err = preview.Refusal(ctx, api, inForce, c, operatorNamespace)
	}
	return plan, heldBack, client.IgnoreNotFound(err)
}

// report is a plan as a table: of its writes, or of how many there are.
type report struct {
	writeTable func(io.Writer) error
	heldBack   string
}

// Write writes the table, and below it why the operator would hold the file back.
func (r report) Write(w io.Writer) error {
	if err := r.writeTable(w); err != nil || r.heldBack == "" {
		return err
	}
	_, err := fmt.Fprintln(w, "The operator would not accept this file: "+r.heldBack)
	return err
}
