package tree

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/xlab/treeprint"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// Draw writes the trees as text, with the footnotes below them.
func Draw(w io.Writer, nodes []*Node) error {
	notes := footnotes{}
	for _, node := range nodes {
		if _, err := io.WriteString(w, notes.drawTree(node)); err != nil {
			return err
		}
	}
	return notes.printFootnotes(w, nodes)
}

// DrawWide is Draw with a table's columns beside the trees.
func DrawWide(w io.Writer, nodes []*Node) error {
	notes := footnotes{}
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "NAME\tTYPE\tDEPTH\tPHASE\tTEMPLATE")
	for _, node := range nodes {
		lines := strings.Split(notes.drawTree(node), "\n")
		for n := range node.walkBelow() {
			terminal.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", lines[0], n.Type, n.depthText(), OrNone(n.Phase), OrNone(n.Template))
			lines = lines[1:]
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return notes.printFootnotes(w, nodes)
}

// WriteNames writes namespace/NAME for each namespace that exists, once even if two of the trees have it.
func WriteNames(w io.Writer, nodes []*Node) error {
	written := map[string]bool{}
	for n := range Existing(nodes) {
		if written[n.Name] {
			continue
		}
		written[n.Name] = true
		if _, err := terminal.Fprintln(w, "namespace/"+n.Name); err != nil {
			return err
		}
	}
	return nil
}

// Existing yields the nodes of namespaces that exist, in the order in which they are drawn.
func Existing(nodes []*Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := range walkAll(nodes) {
			if n.Type != TypeMissing && !yield(n) {
				return
			}
		}
	}
}

func walkAll(nodes []*Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, node := range nodes {
			for n := range node.walkBelow() {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// walkBelow yields the node and those below it, in the order in which they are drawn.
func (n *Node) walkBelow() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { n.visitNodes(yield) }
}

func (n *Node) visitNodes(yield func(*Node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, child := range n.Children {
		if !child.visitNodes(yield) {
			return false
		}
	}
	return true
}

func (n *Node) depthText() string {
	if n.Depth == nil {
		return "<none>"
	}
	return strconv.Itoa(*n.Depth)
}

// OrNone returns the text, or <none> for "", as tables show it.
func OrNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// footnotes are the texts below the trees, numbered in the order in which they first appear. A problem that many
// namespaces share has one footnote.
type footnotes []string

func (f *footnotes) numberOf(text string) string {
	text = terminal.Escape(text)
	i := slices.Index(*f, text)
	if i < 0 {
		i = len(*f)
		*f = append(*f, text)
	}
	return strconv.Itoa(i + 1)
}

func (f *footnotes) drawTree(node *Node) string {
	drawing := treeprint.NewWithRoot(f.nodeLine(node))
	f.drawBranch(drawing, node)
	return drawing.String()
}

func (f *footnotes) drawBranch(drawing treeprint.Tree, node *Node) {
	for _, child := range node.Children {
		f.drawBranch(drawing.AddBranch(f.nodeLine(child)), child)
	}
}

// nodeLine returns the line of one namespace: its marks, its name, what it is if its place in the drawing doesn't show
// that, and its footnotes.
func (f *footnotes) nodeLine(n *Node) string {
	line := terminal.Escape(n.Name)
	if n.Bound {
		line = "[s] " + line
	}
	switch {
	case n.Type == TypeMissing:
		line = "(missing) " + line
	case n.Type == TypeTemplate:
		line += " (template)"
	case n.Type == TypeNone:
		line += " (not managed)"
	case n.InCycle():
		line += " (cycle)"
	}
	var numbers []string
	if n.Phase == PhaseTerminating {
		numbers = append(numbers, f.numberOf("Terminating: the namespace is being deleted"))
	}
	for _, c := range n.Conditions {
		numbers = append(numbers, f.numberOf(fmt.Sprintf("%s=%s (%s): %s", c.Type, c.Status, c.Reason, c.Message)))
	}
	if len(numbers) > 0 {
		line += " (" + strings.Join(numbers, ",") + ")"
	}
	return line
}

// printFootnotes writes the meaning of the mark [s], and the footnotes.
func (f *footnotes) printFootnotes(w io.Writer, nodes []*Node) error {
	var legend []string
	for n := range walkAll(nodes) {
		if n.Bound {
			legend = []string{"[s] bound: deleting its SubNamespace deletes the namespace"}
			break
		}
	}
	for i, note := range *f {
		legend = append(legend, fmt.Sprintf("(%d) %s", i+1, note))
	}
	if len(legend) == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n"+strings.Join(legend, "\n")+"\n")
	return err
}
