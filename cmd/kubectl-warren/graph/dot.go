package graph

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/warren-tenancy/warren/internal/text"
)

// dotShapes and mermaidShapes are the shapes of the kinds of rows, by Kind.Class. A class that a map lacks gets a plain box. The two
// halves of a Mermaid shape enclose the text.
var (
	dotShapes = map[string]string{
		"tenant": "shape=box3d", "root": "shape=box, penwidth=2", "placed": "shape=box, style=dotted", "template": "shape=folder",
		"instance": "shape=note", "unmanaged": "shape=plaintext", "missing": "shape=box, style=dashed", "unmade": "shape=octagon, style=dashed",
	}
	mermaidShapes = map[string][2]string{
		"tenant": {"[[", "]]"}, "sub": {"(", ")"}, "placed": {"([", "])"}, "template": {"[(", ")]"}, "instance": {"{{", "}}"},
		"unmanaged": {"[/", "/]"}, "missing": {">", "]"}, "unmade": {"[/", "\\]"},
	}
)

// WriteDOT writes the forest in the language of Graphviz.
func (f *Forest) WriteDOT(w io.Writer, o Options) (warning string, err error) {
	depth := o.Depth
	if depth < 0 {
		depth = len(f.rowsByDepth())
	}
	var dot bytes.Buffer
	fmt.Fprintf(&dot, "digraph forest {\n  rankdir=LR;\n  labelloc=t;\n  label=%s;\n  node [shape=box];\n",
		quoteDOT(f.Head(o.About).lines()...))
	f.folded(depth).writeEdges(func(n *Node) {
		row := n.Row(RowOptions{People: o.People})
		shape := dotShapes[row.Class]
		if shape != "" {
			shape = ", " + shape
		}
		fmt.Fprintf(&dot, "  %s [label=%s%s];\n", quoteDOT(row.ID), quoteDOT(n.labelLines(row)...), shape)
	}, func(from, to *Node) {
		fmt.Fprintf(&dot, "  %s -> %s;\n", quoteDOT(from.ID), quoteDOT(to.ID))
	})
	dot.WriteString("}\n")
	_, err = w.Write(dot.Bytes())
	return "", err
}

// writeEdges calls node for each row, and edge for each pair of a row and one directly below it. The order is that of the drawing.
func (f *Forest) writeEdges(node func(*Node), edge func(from, to *Node)) {
	f.Walk(func(n *Node, _ int) {
		node(n)
		for _, child := range n.Children {
			edge(n, child)
		}
	})
}

// labelLines returns the lines of a row's box in DOT and Mermaid: the name, what it is, its problems, its people.
func (n *Node) labelLines(row *Row) []string {
	words := row.Words
	switch {
	case n.isFolded():
		words += ", + " + row.Below
	case row.Below != "":
		words += ", " + row.Below
	}
	lines := []string{row.Name, words}
	for _, problem := range row.Problems {
		lines = append(lines, "problem: "+text.Cut(problem, maxProblem))
	}
	if n.isFolded() && row.Hidden != "" {
		lines = append(lines, row.Hidden)
	}
	if row.People != "" {
		lines = append(lines, row.People)
	}
	return lines
}

// maxProblem is the greatest length of a problem in a box, in bytes.
const maxProblem = 160

// lines returns the head, one sentence a line.
func (h Head) lines() []string {
	lines := []string{"Forest of " + h.Context, h.Counts, "Read at " + h.Time + "."}
	if h.Reader != "" {
		lines[2] = "Read at " + h.Time + " as " + h.Reader + "."
	}
	if h.Nothing != "" {
		lines = append(lines, h.Nothing)
	}
	return append(lines, h.Unread...)
}

// quoteDOT returns lines as one quoted string. Graphviz treats \ and " as special characters, and & as the beginning of an HTML entity.
func quoteDOT(lines ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")
	escaped := make([]string, len(lines))
	for i, line := range lines {
		escaped[i] = escape.Replace(line)
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}

// Mermaid's default limits for one chart.
const (
	maxMermaidEdges = 500
	maxMermaidSize  = 50_000
)

// WriteMermaid writes the forest as a flow chart of Mermaid. Mermaid refuses more than 500 edges or 50,000 characters: the deepest levels
// are folded until the chart fits. If that is not enough, the last trees are left out. warning says so.
func (f *Forest) WriteMermaid(w io.Writer, o Options) (warning string, err error) {
	for most := maxMermaidEdges; ; most = most * 9 / 10 {
		some, levels, left := f.fitLevels(o.Depth, max(most, 2))
		chart := some.mermaid(o, left)
		if len(chart) <= maxMermaidSize || most < 2 {
			_, err = w.Write(chart)
			return foldWarning("a chart of 500 edges and 50,000 characters, Mermaid's defaults", levels, left), err
		}
	}
}

func (f *Forest) mermaid(o Options, left int) []byte {
	var chart bytes.Buffer
	for _, line := range f.Head(o.About).lines() {
		fmt.Fprintf(&chart, "%%%% %s\n", encodeMermaid(line))
	}
	chart.WriteString("flowchart LR\n")
	ids := map[*Node]int{}
	f.Walk(func(n *Node, _ int) { ids[n] = len(ids) })
	f.writeEdges(func(n *Node) {
		row := n.Row(RowOptions{People: o.People})
		shape, ok := mermaidShapes[row.Class]
		if !ok {
			shape = [2]string{"[", "]"}
		}
		lines := n.labelLines(row)
		for i, line := range lines {
			lines[i] = encodeMermaid(line)
		}
		fmt.Fprintf(&chart, "n%d%s\"%s\"%s\n", ids[n], shape[0], strings.Join(lines, "<br>"), shape[1])
	}, func(from, to *Node) {
		fmt.Fprintf(&chart, "n%d-->n%d\n", ids[from], ids[to])
	})
	if left > 0 {
		fmt.Fprintf(&chart, "more[\"+ %d more trees\"]\n", left)
	}
	return chart.Bytes()
}

// encodeMermaid writes each character that may mean something to Mermaid or to HTML as an entity of Mermaid, such as #35;.
func encodeMermaid(line string) string {
	var encoded strings.Builder
	for _, r := range line {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,:+-", r) {
			encoded.WriteRune(r)
		} else {
			fmt.Fprintf(&encoded, "#%d;", r)
		}
	}
	return encoded.String()
}
