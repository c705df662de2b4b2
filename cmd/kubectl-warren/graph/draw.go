package graph

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/warren-tenancy/warren/internal/text"
)

// Measures of a drawing, in pixels. A cell is the width of a character in the widest usual monospaced font at 12
// pixels.
const (
	cell       = 7.5
	lineHeight = 16
	padding    = 8
	betweenRow = 8
	betweenCol = 40
	margin     = 16
	signWidth  = 14
)

// maxCells is the greatest length of a line of people in a box, in cells. The box's tooltip has the whole line.
const maxCells = 48

// Drawing is the forest as boxes and lines, from left to right.
type Drawing struct {
	Width, Height int
	// Name is what a screen reader reads.
	Name string
	// Style is the style sheet of a drawing that is a file of its own; "" for one inside of a page.
	Style template.CSS
	Texts []Text
	Boxes []*Box
	// Lines are the paths from boxes to those below them.
	Lines []string
}

// Box is one row of the forest, or an entry of the legend.
type Box struct {
	Class               string
	X, Y, Width, Height int
	// Title is the tooltip: all that a row says, one sentence on each line. It is empty in the legend.
	Title string
	Texts []Text
	// Signs are the paths of the triangles that mark problems.
	Signs []string

	below []*Box
}

// Text is one line of text. Length is its width if it has characters beyond ASCII, which may be drawn in another font,
// and 0 otherwise.
type Text struct {
	Class        string
	X, Y, Length int
	Text         string
}

// WriteSVG writes the forest as an SVG file with a legend. Where the forest has more than 500 rows, the deepest levels
// are folded, or the last trees left out, and warning says so.
func (f *Forest) WriteSVG(w io.Writer, o Options) (warning string, err error) {
	drawing := f.Draw(o)
	_, levels, left := f.fitLevels(o.Depth, maxDrawn)
	drawing.addHead(f.Head(o.About), left)
	drawing.addLegend()
	drawing.Style = template.CSS(readAsset("drawing.css")) //nolint:gosec // a file of this package
	return foldWarning("an SVG of 500 boxes", levels, left), Templates.ExecuteTemplate(w, "svg", drawing)
}

// foldWarning describes what a drawing leaves out; "" where it leaves out nothing.
func foldWarning(what string, levels, left int) string {
	switch {
	case left > 0:
		return fmt.Sprintf("the forest does not fit into %s: only the top row of each of the first trees is drawn, and %s are left out; "+
			"name a ROOT", what,
			text.Count(left, "other tree", "other trees"))
	case levels >= 0:
		return fmt.Sprintf("the forest does not fit into %s: it is drawn to %s below each root; name a ROOT to see more of one tree", what,
			text.Count(levels, "level", "levels"))
	}
	return ""
}

// Draw lays out the forest to the depth in o, or as many levels of it as have at most 500 rows.
func (f *Forest) Draw(o Options) *Drawing {
	some, _, _ := f.fitLevels(o.Depth, maxDrawn)
	d := &Drawing{Name: "Forest of " + EscapeText(o.Context) + ". " + f.Head(o.About).Counts}
	var tops []*Box
	for _, top := range some.Trees {
		tops = append(tops, d.addBoxes(top, o))
	}
	d.packTrees(tops)
	return d
}

func (d *Drawing) addBoxes(n *Node, o Options) *Box {
	box := newBox(n, o)
	d.Boxes = append(d.Boxes, box)
	for _, child := range n.Children {
		box.below = append(box.below, d.addBoxes(child, o))
	}
	return box
}

// newBox makes the box of a row: its name, what it is, its problems, its people.
func newBox(n *Node, o Options) *Box {
	row := n.Row(RowOptions{People: o.People})
	box := &Box{Class: row.Class, Title: strings.Join(row.describeRow(), "\n")}
	box.addText("name", row.Name, 0)
	words := row.Words
	if n.isFolded() {
		words += ", + " + row.Below
	} else if row.Below != "" {
		words += ", " + row.Below
	}
	box.addText("words", words, 0)
	for _, c := range n.Problems {
		box.addProblem(fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
	}
	if n.isFolded() && row.Hidden != "" {
		box.addProblem(row.Hidden)
	}
	if row.People != "" {
		for line := range strings.SplitSeq(row.People, "; ") {
			box.addText("words", cutCells(line), 0)
		}
	}
	box.Width += 2 * padding
	box.Height = len(box.Texts)*lineHeight + 2*padding - 4
	return box
}

// describeRow are all that a row says, one sentence each.
func (r *Row) describeRow() []string {
	all := []string{r.Name + ": " + r.Words}
	if r.Below != "" {
		all[0] += ", " + r.Below
	}
	all = append(all, r.Problems...)
	if r.People != "" {
		all = append(all, r.People)
	}
	return all
}

func (b *Box) addProblem(words string) {
	y := padding + len(b.Texts)*lineHeight
	b.Signs = append(b.Signs, fmt.Sprintf("M%d %d l5 -9 l5 9 z", padding, y+10))
	b.addText("bad", EscapeText(words), signWidth)
}

// addText adds a line. The width of a box is that of its longest line until its padding is added.
func (b *Box) addText(class, line string, indent int) {
	t := Text{Class: class, X: padding + indent, Y: padding + len(b.Texts)*lineHeight + 10, Text: line}
	if utf8.RuneCountInString(line) != len(line) {
		t.Length = widthOf(line) // another font may be used for characters beyond ASCII
	}
	b.Texts = append(b.Texts, t)
	b.Width = max(b.Width, widthOf(line)+indent)
}

func widthOf(line string) int { return int(math.Ceil(float64(cellsOf(line)) * cell)) }

// cellsOf counts the cells of a line: two for a wide character.
func cellsOf(line string) int {
	cells := 0
	for _, r := range line {
		cells++
		if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
			cells++
		}
	}
	return cells
}

func cutCells(line string) string {
	cells := 0
	for i, r := range line {
		if cells += cellsOf(string(r)); cells > maxCells {
			return line[:i] + "…"
		}
	}
	return line
}
