// Package trees is the command tree, which shows trees of namespaces.
package trees

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// document is what tree prints as JSON or YAML.
type document struct {
	invocation.Document
	Items []*tree.Node `json:"items"`
}

// Command is the command "tree [ROOT…]".
func Command(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "tree [ROOT…]",
		SuggestFor: []string{"list", "ls", "sub"},
		Short:      "Show the trees of namespaces, and the templates with their instances",
		Long: "Show the trees of namespaces, and the templates with their instances; with names, only the trees that begin at these.\n" +
			"If you have no right to list namespaces, you see the tenants that kubectl warren ns finds, or what can be found from " +
			"the roots that you name.\n" +
			"[s] marks a sub-namespace that belongs to a SubNamespace, (1) a footnote.",
		Example:           "  kubectl warren tree\n  kubectl warren tree payments -o wide",
		Annotations:       map[string]string{invocation.InsteadOfNamespace: "name the root of a tree, as in kubectl warren tree payments"},
		ValidArgsFunction: inv.CompleteNamespaces,
	}
	output := AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return showTrees(cmd.Context(), inv, names, output.Value)
	}
	return cmd
}

// AddOutput adds the flag --output to a command that draws trees, and returns its value; "" means text, such as drawn
// trees.
func AddOutput(cmd *cobra.Command) *invocation.Choice {
	return invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML, invocation.OutputName,
		invocation.OutputWide)
}

// showTrees prints the trees that begin at names, or all of them.
func showTrees(ctx context.Context, inv *invocation.Invocation, names []string, format string) error {
	if err := invocation.CheckNamespaces(names...); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	view, err := readForest(ctx, inv, api, names)
	if err != nil {
		return err
	}
	return Draw(inv, view, names, format, "No trees found.")
}

// Draw prints the trees of a view that begin at names, or all of them; nothing is the text where there are none.
func Draw(inv *invocation.Invocation, view tree.View, names []string, format, nothing string) (err error) {
	var nodes []*tree.Node
	if len(names) == 0 {
		nodes = view.All()
	} else if nodes, err = view.Below(names); err != nil {
		return err
	}
	if len(nodes) == 0 && (format == "" || format == invocation.OutputWide) {
		terminal.Fprintln(inv.Streams.ErrOut, nothing)
		return nil
	}
	return printNodes(inv, nodes, format)
}

// readForest lists everything. If the user may not list namespaces, it walks from names, or from what the user can
// find.
func readForest(ctx context.Context, inv *invocation.Invocation, api client.Client,
	names []string) (view tree.View, err error) {
	if view, err = gather.Forest(ctx, api); !failure.Refused(err) {
		return view, err
	}
	var closed, unseen []string
	if len(names) > 0 {
		view, closed, unseen, err = gather.Walk(ctx, api, names)
	} else {
		view, closed, unseen, err = walkOwn(ctx, inv, api)
	}
	if err == nil {
		inv.WarnClosed(closed, unseen)
	}
	return view, err
}

func walkOwn(ctx context.Context, inv *invocation.Invocation,
	api client.Client) (view tree.View, closed, unseen []string, err error) {
	tops, err := inv.FindTops(ctx, api)
	if err != nil {
		return view, nil, nil, err
	}
	return gather.WalkFound(ctx, api, tops)
}

// printNodes writes nothing to Out unless all of it can be written.
func printNodes(inv *invocation.Invocation, nodes []*tree.Node, format string) error {
	var text bytes.Buffer
	var err error
	switch format {
	case invocation.OutputJSON, invocation.OutputYAML:
		err = invocation.WriteAs(&text, format, document{invocation.DocumentOf("NamespaceTree"), nodes})
	case invocation.OutputName:
		err = tree.WriteNames(&text, nodes)
	case invocation.OutputWide:
		err = tree.DrawWide(&text, nodes)
	default:
		err = tree.Draw(&text, nodes)
	}
	if err == nil {
		_, err = text.WriteTo(inv.Streams.Out)
	}
	return err
}
