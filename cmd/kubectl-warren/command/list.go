package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// namespaceTree is what list prints as JSON or YAML.
type namespaceTree struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Items      []*tree.Node `json:"items"`
}

// listCommand is the command "list [ROOT…]".
func (p *plugin) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [ROOT…]",
		Aliases: []string{"ls"},
		Short:   "Show the trees of namespaces, and the templates with their instances",
		Long: "Show the trees of namespaces, and the templates with their instances; with names, only what begins there.\n" +
			"Whoever may not list namespaces names a root and sees what can be found from there.",
		ValidArgsFunction: p.completeNamespaces,
	}
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error { return p.showTrees(cmd.Context(), names, output.value) }
	return cmd
}

// treeCommand is the command "tree NS…", list under the name that users of HNC know.
func (p *plugin) treeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "tree {NAMESPACE… | -A}",
		Short:             "Show the tree that begins at a namespace",
		ValidArgsFunction: p.completeNamespaces,
	}
	output := addOutput(cmd)
	all := cmd.Flags().BoolP("all-namespaces", "A", false, "Show every tree")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if *all == (len(names) > 0) {
			return fmt.Errorf("name one namespace or more, or give --all-namespaces (-A), not both")
		}
		return p.showTrees(cmd.Context(), names, output.value)
	}
	return cmd
}

func addOutput(cmd *cobra.Command) *choice {
	return addChoice(cmd, "output", "o", "", "Output format", outputJSON, outputYAML, outputName, outputWide)
}

// showTrees prints the trees that begin at names, or all of them.
func (p *plugin) showTrees(ctx context.Context, names []string, format string) error {
	if err := checkNamespaces(names...); err != nil {
		return err
	}
	api, err := p.connect()
	if err != nil {
		return err
	}
	view, err := p.readForest(ctx, api, names)
	if err != nil {
		return err
	}
	return p.drawTrees(view, names, format, "No trees found.")
}

// drawTrees prints the trees of a view that begin at names, or all of them; nothing is what to say where there are none.
func (p *plugin) drawTrees(view tree.View, names []string, format, nothing string) (err error) {
	var nodes []*tree.Node
	if len(names) == 0 {
		nodes = view.All()
	} else if nodes, err = view.Below(names); err != nil {
		return err
	}
	if len(nodes) == 0 && (format == "" || format == outputWide) {
		terminal.Fprintln(p.streams.ErrOut, nothing)
		return nil
	}
	return p.printNodes(nodes, format)
}

// readForest lists everything, or walks from names if the user may not list namespaces.
func (p *plugin) readForest(ctx context.Context, api client.Client, names []string) (tree.View, error) {
	view, err := gatherForest(ctx, api)
	switch {
	case !failure.Refused(err):
		return view, err
	case len(names) == 0:
		return view, fmt.Errorf("you may not list namespaces; name a root")
	}
	view, closed, err := walkTrees(ctx, api, names)
	if err == nil && len(closed) > 0 {
		terminal.Fprintf(p.streams.ErrOut, "Warning: you may not list SubNamespaces in %s; what may be below is not shown\n", strings.Join(closed, ", "))
	}
	return view, err
}

// printNodes writes nothing to Out unless all of it can be written.
func (p *plugin) printNodes(nodes []*tree.Node, format string) error {
	var text bytes.Buffer
	var err error
	switch format {
	case outputJSON, outputYAML:
		err = writeAs(&text, format, namespaceTree{"cli.tenancy.warren.dev/v1alpha1", "NamespaceTree", nodes})
	case outputName:
		err = tree.WriteNames(&text, nodes)
	case outputWide:
		err = tree.DrawWide(&text, nodes)
	default:
		err = tree.Draw(&text, nodes)
	}
	if err == nil {
		_, err = text.WriteTo(p.streams.Out)
	}
	return err
}
