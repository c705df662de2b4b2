package invocation

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
)

// AddTenant gives cmd the flag --tenant.
func (inv *Invocation) AddTenant(cmd *cobra.Command) *string {
	tenant := cmd.Flags().String("tenant", "", "Only the tree that begins at this namespace, such as the root of a tenant")
	if err := cmd.RegisterFlagCompletionFunc("tenant", inv.CompleteRoots); err != nil {
		panic(err) // the flag was just added
	}
	return tenant
}

// FindOwn returns the namespaces of the tree of tenant or, for "", of all trees that the caller can find. On stderr, it
// names the namespaces whose children the caller may not read, and the tenants in which the caller may read nothing.
func (inv *Invocation) FindOwn(ctx context.Context, tenant string) ([]gather.OwnNamespace, error) {
	own, err := inv.LookForOwn(ctx, tenant)
	if err == nil {
		inv.WarnClosed(own.Closed, own.Unseen)
	}
	return own.Namespaces, err
}

// WarnClosed warns of namespaces whose children the caller may not read, and of tenants in which the caller may read
// nothing.
func (inv *Invocation) WarnClosed(closed, unseen []string) {
	if len(closed) > 0 {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not list SubNamespaces in %s; what may be below is not shown\n",
			strings.Join(closed, ", "))
	}
	if len(unseen) > 0 {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may read no namespace of %s: you are a manager or sudoer, and no user there; "+
			"a sudoer begins the command with kubectl sudo --tenant %s\n", strings.Join(unseen, ", "), unseen[0])
	}
}

// LookForOwn returns the namespaces of the tree of tenant or, for "", of all trees that the caller can find.
func (inv *Invocation) LookForOwn(ctx context.Context, tenant string) (gather.OwnTrees, error) {
	if tenant != "" {
		if err := CheckName("tenant", tenant); err != nil {
			return gather.OwnTrees{}, fmt.Errorf("--tenant: %w", err)
		}
	}
	homes, err := inv.findHomes()
	if err != nil {
		return gather.OwnTrees{}, err
	}
	api, err := inv.Connect()
	if err != nil {
		return gather.OwnTrees{}, err
	}
	return gather.FindOwnTrees(ctx, api, tenant, homes)
}

// FindTops returns the namespaces at which a command that takes roots as its arguments begins without them, for a
// caller who may not list namespaces. If there are none, the error is a gather.NoTopError.
func (inv *Invocation) FindTops(ctx context.Context, api client.Client) ([]string, error) {
	homes, err := inv.findHomes()
	if err != nil {
		return nil, err
	}
	return gather.FindTops(ctx, api, homes, "name a root")
}

// findHomes returns the namespace in force, and those of the kubeconfig's other contexts that have the same cluster and
// user.
func (inv *Invocation) findHomes() ([]string, error) {
	loader := inv.Flags.ToRawKubeConfigLoader()
	home, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the API server by the kubeconfig and flags: %w", err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server by the kubeconfig and flags: %w", err)
	}
	homes := sets.New[string]()
	current := raw.Contexts[cmp.Or(*inv.Flags.Context, raw.CurrentContext)]
	for _, other := range raw.Contexts {
		if current != nil && other.Cluster == current.Cluster && other.AuthInfo == current.AuthInfo && other.Namespace != "" {
			homes.Insert(other.Namespace)
		}
	}
	return append([]string{home}, sets.List(homes.Delete(home))...), nil
}
