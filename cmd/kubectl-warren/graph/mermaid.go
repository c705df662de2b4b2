package graph

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/warren-tenancy/warren/internal/text"
)

// mermaidShapes are the shapes of the kinds of rows, by Kind.Class. A class that the map lacks gets a plain box. The
// two halves of a shape enclose the text.
var mermaidShapes = map[string][2]string{
	"tenant": {"[[", "]]"}, "sub": {"(", ")"}, "placed": {"([", "])"}, "template": {"[(", ")]"}, "instance": {"{{", "}}"},
	"unmanaged": {"[/", "/]"}, "missing": {">", "]"}, "unmade": {"[/", "\\]"},
}

// labelLines returns the lines of a row's box: the name, what it is, its problems, its people.
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

// describeHead returns the head, one sentence a line.
func (h Head) describeHead() []string {
	lines := []string{"Forest of " + h.Context, h.Counts, "Read at " + h.Time + "."}
	if h.Reader != "" {
		lines[2] = "Read at " + h.Time + " as " + h.Reader + "."
	}
	if h.Nothing != "" {
		lines = append(lines, h.Nothing)
	}
	return append(lines, h.Unread...)
}

// Mermaid's default limits for one chart.
const (
	maxMermaidEdges = 500
	maxMermaidSize  = 50_000
)

// WriteMermaid writes the forest as a flow chart of Mermaid. Mermaid refuses more than 500 edges or 50,000 characters:
// the deepest levels are folded until the chart fits. If that is not enough, the last trees are left out. warning says
// so.
func (f *Forest) WriteMermaid(w io.Writer, o Options) (warning string, err error) {
	for most := maxMermaidEdges; ; most = most * 9 / 10 {
		some, levels, left := f.fitLevels(o.Depth, max(most, 2))
		chart := some.drawMermaid(o, left)
		if len(chart) <= maxMermaidSize || most < 2 {
			_, err = w.Write(chart)
			return foldWarning("a chart of 500 edges and 50,000 characters, Mermaid's defaults", levels, left), err
		}
	}
}

func (f *Forest) drawMermaid(o Options, left int) []byte {
	var chart bytes.Buffer
	for _, line := range f.Head(o.About).describeHead() {
		fmt.Fprintf(&chart, "%%%% %s\n", encodeMermaid(line))
	}
	chart.WriteString("flowchart LR\n")
	ids := map[*Node]int{}
	f.Walk(func(n *Node, _ int) { ids[n] = len(ids) })
	f.Walk(func(n *Node, _ int) {
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
		for _, child := range n.Children {
			fmt.Fprintf(&chart, "n%d-->n%d\n", ids[n], ids[child])
		}
	})
	if left > 0 {
		fmt.Fprintf(&chart, "more[\"+ %d more trees\"]\n", left)
	}
	return chart.Bytes()
}

// encodeMermaid writes each character that may mean something to Mermaid or to HTML as an entity of Mermaid, such as
// #35;.
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
