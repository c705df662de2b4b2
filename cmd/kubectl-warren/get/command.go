// Package get is the command get: it lists objects in all namespaces of the user's own trees, as "kubectl get
// --all-namespaces" does for the cluster. RBAC can't filter a list of the whole cluster, so the command lists each
// namespace separately and merges the answers.
package get

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/restmapper"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// options has the values of the flags of get.
type options struct {
	tenant           *string
	selector, fields string
	watch            bool
	table            tableOptions
	print            *genericclioptions.PrintFlags
}

// Command is the command "get KIND".
func Command(inv *invocation.Invocation) *cobra.Command {
	o := &options{print: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "get KIND[,KIND…]",
		Short: "List objects in all namespaces of your trees",
		Long: "List objects in all namespaces of your trees, which are those of kubectl warren ns. In contrast to kubectl get\n" +
			"--all-namespaces, this needs no rights in the whole cluster: each namespace is listed by itself, with your own rights.\n" +
			"Namespaces in which you may not list the kind are named on stderr; if you may list it in none, that is an error. With --watch\n" +
			"(-w), which follows one kind, namespaces that are created later are followed too, after ten seconds at most.",
		Example: "  kubectl warren get pods\n  kubectl warren get deployments.apps,services -l app=web --tenant payments -o wide\n" +
			"  kubectl warren get secrets -o name",
		Args:              invocation.ExactlyAsUsage("one kind, or several with commas between"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.tenant = inv.AddTenant(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "Selector of labels, such as app=web")
	flags.StringVar(&o.fields, "field-selector", "", "Selector of fields, such as status.phase=Running")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After the list, print what changes")
	flags.BoolVar(&o.table.NoHeaders, "no-headers", false, "Print a table without its headers")
	flags.BoolVar(&o.table.ShowLabels, "show-labels", false, "Add a column with all labels to a table")
	flags.StringSliceVarP(&o.table.ColumnLabels, "label-columns", "L", nil,
		"Add a column for each of these labels to a table")
	o.print.AddFlags(cmd)
	cmd.Flags().Lookup("output").Usage = "Output format: wide, custom-columns, custom-columns-file, " + strings.Join(o.print.AllowedFormats(),
		", ")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runGet(cmd.Context(), inv, args[0], o) }
	return cmd
}

func runGet(ctx context.Context, inv *invocation.Invocation, kinds string, o *options) error {
	printer, err := o.newPrinter()
	if err != nil {
		return err
	}
	mappings, err := findMappings(inv, kinds)
	if err != nil {
		return err
	}
	if o.watch && len(mappings) > 1 {
		return fmt.Errorf("--watch follows one kind, not %d", len(mappings))
	}
	own, err := inv.FindOwn(ctx, *o.tenant)
	if err != nil {
		return err
	}
	namespaces := namesOf(own)
	config, err := inv.RESTConfig()
	if err != nil {
		return err
	}
	var all []*answers
	for _, mapping := range mappings {
		requests, err := newRequests(config, mapping, o)
		if err != nil {
			return err
		}
		found, err := requests.listAll(ctx, namespaces)
		if err != nil {
			return err
		}
		all = append(all, found)
	}
	if err := warnRefused(inv, all, len(own)); err != nil {
		return err
	}
	if err := printer.printLists(inv.Streams, all, o.watch); err != nil || !o.watch {
		return err
	}
	f := &follower{answers: all[0], show: printer.printInTurn(inv.Streams.Out), find: func(ctx context.Context) ([]string, error) {
		own, err := inv.LookForOwn(ctx, *o.tenant)
		return namesOf(own.Namespaces), err
	}, warn: func(format string, values ...any) { terminal.Fprintf(inv.Streams.ErrOut, format, values...) }}
	return f.watchNamespaces(ctx)
}

func namesOf(own []gather.OwnNamespace) []string {
	names := make([]string, len(own))
	for i, namespace := range own {
		names[i] = namespace.Name
	}
	return names
}

// findMappings finds the kinds in a list with commas. An item of the list is a kind, or a category such as all.
func findMappings(inv *invocation.Invocation, kinds string) ([]*meta.RESTMapping, error) {
	api, err := inv.Flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	var found []*meta.RESTMapping
	for name := range strings.SplitSeq(kinds, ",") {
		names := []string{name}
		if members, ok := restmapper.NewDiscoveryCategoryExpander(api).Expand(name); ok {
			names = nil
			for _, member := range members {
				names = append(names, member.String())
			}
		}
		for _, name := range names {
			mapping, err := inv.FindMapping(name)
			if err != nil {
				return nil, err
			}
			if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
				return nil, fmt.Errorf("%s are in no namespace: kubectl get %s lists them", mapping.Resource.Resource,
					mapping.Resource.Resource)
			}
			found = append(found, mapping)
		}
	}
	return found, nil
}
