package invocation

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
)

// AddTenant gives cmd the flag --tenant.
func (inv *Invocation) AddTenant(cmd *cobra.Command) *string {
	tenant := cmd.Flags().String("tenant", "", "Only the tree that begins at this namespace, such as the root of a tenant")
	if err := cmd.RegisterFlagCompletionFunc("tenant", inv.CompleteNamespaces); err != nil {
		panic(err) // the flag was just added
	}
	return tenant
}

// FindOwn returns the namespaces of the tree of tenant or, for "", of all trees that the caller can find. On stderr, it names the
// namespaces whose children the caller may not read.
func (inv *Invocation) FindOwn(ctx context.Context, tenant string) ([]gather.OwnNamespace, error) {
	own, closed, err := inv.LookForOwn(ctx, tenant)
	if err == nil && len(closed) > 0 {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not list SubNamespaces in %s; what may be below is not shown\n",
			strings.Join(closed, ", "))
	}
	return own, err
}

// LookForOwn returns the namespaces of the tree of tenant or, for "", of all trees that the caller can find. closed are the namespaces
// whose children the caller may not read.
func (inv *Invocation) LookForOwn(ctx context.Context, tenant string) (own []gather.OwnNamespace, closed []string, err error) {
	if tenant != "" {
		if err := CheckName("tenant", tenant); err != nil {
			return nil, nil, fmt.Errorf("--tenant: %w", err)
		}
	}
	home, _, err := inv.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the API server by the kubeconfig and flags: %w", err)
	}
	api, err := inv.Connect()
	if err != nil {
		return nil, nil, err
	}
	return gather.Own(ctx, api, tenant, home)
}
