package main

import (
	"fmt"
	"html"
	"strings"
)

// style colours the classes of boxes and arrows for a light page, and for a dark one.
const style = `
  :root { color-scheme: light dark; }
  text { font: 14px system-ui, "Segoe UI", sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .note { fill: #59636e; }
  rect { stroke: #59636e; stroke-width: 1.2; }
  .plain { fill: #f6f8fa; }
  .strong { fill: #ddf4ff; }
  .source { fill: #fff1c2; }
  .copy { fill: #dafbe1; }
  line { stroke: #59636e; stroke-width: 1.6; }
  .dashed { stroke-dasharray: 5 4; }
  .head { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .note { fill: #9198a1; }
    rect { stroke: #9198a1; }
    .plain { fill: #151b23; }
    .strong { fill: #0c2d4a; }
    .source { fill: #3d2e00; }
    .copy { fill: #0f3d1e; }
    line { stroke: #9198a1; }
    .head { fill: #9198a1; }
  }
`

// drawing collects the elements of a picture. All measures are in pixels, from the upper left corner.
type drawing struct {
	strings.Builder
	width, height int
	title         string
}

func newDrawing(width, height int, title string) *drawing {
	return &drawing{width: width, height: height, title: title}
}

// box draws a rectangle with a title and lines below it.
func (d *drawing) box(x, y, width, height int, class, title string, lines ...string) {
	fmt.Fprintf(d, "  <rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", class, x, y, width, height)
	d.write(x+12, y+21, "title", title)
	for i, text := range lines {
		d.write(x+12, y+21+18*(i+1), "note", text)
	}
}

// arrow draws a line with a head, solid or dashed.
func (d *drawing) arrow(fromX, fromY, toX, toY int, class string) {
	fmt.Fprintf(d, "  <line class=%q x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" marker-end=\"url(#head)\"/>\n", class, fromX, fromY, toX, toY)
}

// text draws a note that belongs to no box.
func (d *drawing) text(x, y int, text string) { d.write(x, y, "note", text) }

func (d *drawing) write(x, y int, class, text string) {
	fmt.Fprintf(d, "  <text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

// String returns the picture as a document of its own. Screen readers read the title.
func (d *drawing) String() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">
  <title id="title">%s</title>
  <style>%s  </style>
  <defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
    <path class="head" d="M 0 0 L 10 5 L 0 10 z"/>
  </marker></defs>
%s</svg>
`, d.width, d.height, d.width, d.height, html.EscapeString(d.title), style, d.Builder.String())
}
