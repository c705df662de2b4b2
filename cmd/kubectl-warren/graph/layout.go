package graph

import (
	"fmt"
	"math"
	"strings"
)

// aspect is the ratio of width to height that a drawing of many trees should have.
const aspect = 1.5

// packTrees places the trees one below the other, in as many columns as give the drawing about the ratio aspect of
// width to height.
func (d *Drawing) packTrees(tops []*Box) {
	area, highest := 0, 0
	widths, heights := make([]int, len(tops)), make([]int, len(tops))
	for i, top := range tops {
		widths[i], heights[i] = top.placeBelow()
		area += (widths[i] + betweenCol) * (heights[i] + 2*betweenRow)
		highest = max(highest, heights[i])
	}
	limit := max(highest, int(math.Sqrt(float64(area)/aspect)))
	x, y, widest := margin, margin, 0
	for i, top := range tops {
		if y > margin && y+heights[i] > margin+limit {
			x, y, widest = x+widest+betweenCol, margin, 0
		}
		top.moveBy(x, y)
		y += heights[i] + 2*betweenRow
		widest = max(widest, widths[i])
		d.Width, d.Height = max(d.Width, x+widths[i]+margin), max(d.Height, y-2*betweenRow+margin)
	}
	d.Width, d.Height = max(d.Width, 2*margin), max(d.Height, 2*margin)
	for _, top := range tops {
		d.drawLines(top)
	}
}

// placeBelow lays the tree of a box out from the point 0,0 and returns its size: a column for each level, a row for
// each leaf, and each box in the middle of those below it.
func (b *Box) placeBelow() (width, height int) {
	var widths []int
	b.measureLevels(0, &widths)
	height = b.placeRows(0)
	b.placeColumns(0, widths)
	for _, w := range widths {
		width += w + betweenCol
	}
	return width - betweenCol, height
}

// measureLevels finds the width of the widest box of each level.
func (b *Box) measureLevels(level int, widths *[]int) {
	if len(*widths) == level {
		*widths = append(*widths, 0)
	}
	(*widths)[level] = max((*widths)[level], b.Width)
	for _, below := range b.below {
		below.measureLevels(level+1, widths)
	}
}

func (b *Box) placeColumns(x int, widths []int) {
	b.X = x
	for _, below := range b.below {
		below.placeColumns(x+widths[0]+betweenCol, widths[1:])
	}
}

// placeRows sets Y of the box and of those below it in the tree, from y downwards, and returns the height that they
// need.
func (b *Box) placeRows(y int) int {
	b.Y = y
	if len(b.below) == 0 {
		return b.Height
	}
	end := y
	for _, below := range b.below {
		end += below.placeRows(end) + betweenRow
	}
	taken := end - betweenRow - y
	if b.Height > taken { // the box is higher than those below it in the tree together
		for _, below := range b.below {
			below.moveBy(0, (b.Height-taken)/2)
		}
		return b.Height
	}
	first, last := b.below[0], b.below[len(b.below)-1]
	middle := (first.findMiddle() + last.findMiddle()) / 2
	b.Y = min(max(middle-b.Height/2, y), y+taken-b.Height)
	return taken
}

func (b *Box) findMiddle() int { return b.Y + b.Height/2 }

func (b *Box) moveBy(x, y int) {
	b.X, b.Y = b.X+x, b.Y+y
	for _, below := range b.below {
		below.moveBy(x, y)
	}
}

// drawLines draws the lines from a box to those below it, as one path for each box.
func (d *Drawing) drawLines(b *Box) {
	if len(b.below) == 0 {
		return
	}
	turn := b.below[0].X - betweenCol/2
	var path strings.Builder
	fmt.Fprintf(&path, "M%d %dH%d", b.X+b.Width, b.findMiddle(), turn)
	for _, below := range b.below {
		fmt.Fprintf(&path, "M%d %dV%dH%d", turn, b.findMiddle(), below.findMiddle(), below.X)
		d.drawLines(below)
	}
	d.Lines = append(d.Lines, path.String())
}

// addHead puts the head above the boxes.
func (d *Drawing) addHead(head Head, left int) {
	lines := head.describeHead()
	if left > 0 {
		lines = append(lines, fmt.Sprintf("+ %d more trees", left))
	}
	height := len(lines)*lineHeight + margin
	for _, b := range d.Boxes {
		b.Y += height
	}
	for i, line := range lines {
		class := "words"
		if i == 0 {
			class = "name"
		}
		d.Texts = append(d.Texts, Text{Class: class, X: margin, Y: margin + 12 + i*lineHeight, Text: line})
		d.Width = max(d.Width, widthOf(line)+2*margin)
	}
	d.shiftLines(height)
}

// shiftLines draws the lines anew after the boxes have moved down by height.
func (d *Drawing) shiftLines(height int) {
	d.Height += height
	d.Lines = nil
	below := map[*Box]bool{}
	for _, b := range d.Boxes {
		for _, child := range b.below {
			below[child] = true
		}
	}
	for _, b := range d.Boxes {
		if !below[b] {
			d.drawLines(b)
		}
	}
}

// legendKinds are the kinds in the order in which the legend explains them.
var legendKinds = []Kind{
	KindTenant, KindRoot, KindSubNamespace, KindPlaced, KindTemplate, KindInstance, KindUnmanaged, KindMissing,
	KindUnmadeSub, KindUnmadeTenant,
}

// addLegend adds a box for each kind that the drawing has. These boxes are below all others, in as many lines as the
// width requires.
func (d *Drawing) addLegend() {
	drawn := map[string]bool{}
	for _, b := range d.Boxes {
		drawn[b.Class] = true
	}
	x, y := margin, d.Height
	for _, kind := range legendKinds {
		if !drawn[kind.Class()] {
			continue
		}
		b := &Box{Class: kind.Class() + " legend"}
		b.addText("words", string(kind), 0)
		b.Width, b.Height = b.Width+2*padding, lineHeight+2*padding-4
		if x > margin && x+b.Width+margin > d.Width {
			x, y = margin, y+b.Height+betweenRow
		}
		b.X, b.Y = x, y
		x += b.Width + betweenRow
		d.Width, d.Height = max(d.Width, x-betweenRow+margin), max(d.Height, y+b.Height+margin)
		d.Boxes = append(d.Boxes, b)
	}
}
