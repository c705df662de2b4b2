package graph

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
)

// Assets are the style sheets, the ES module and the templates of the pages.
//
//go:embed assets
var Assets embed.FS

// Templates are the parts of a page, each with the type of its data: "tree" of []*Row, "branch" and "row" of a *Row,
// "controls" of a page with fields People and Drawing, "legend", and "drawing" of a *Drawing.
var Templates = template.Must(template.ParseFS(Assets, "assets/*.html"))

const (
	// maxUnfolded is the number of rows up to which a page begins unfolded.
	maxUnfolded = 300
	// maxDrawn is the greatest number of rows in a drawing. A page with more rows has no drawing.
	maxDrawn = 500
)

// Options describe what a drawing shows.
type Options struct {
	About
	// People reports whether the lists of the tenants are shown.
	People bool
	// Depth is how many levels below the first row of a tree are shown or begin unfolded; negative for all. A page of more
	// than 300 rows then begins folded.
	Depth int
}

// page is what the template "page" shows.
type page struct {
	Head     Head
	Policy   string
	Style    template.CSS
	Unfolded template.CSS
	Script   template.JS
	Rows     []*Row
	People   bool
	Drawing  *Drawing
}

// WriteHTML writes the forest as one HTML file that needs nothing else: all rows are in its markup, and it sends no
// requests.
func (f *Forest) WriteHTML(w io.Writer, o Options) (warning string, err error) {
	p := page{Head: f.Head(o.About), People: o.People}
	style := readAsset("forest.css")
	if f.Counts.Rows <= maxDrawn {
		p.Drawing = f.Draw(o)
		style += readAsset("drawing.css")
	}
	unfolded, script := readAsset("unfolded.css"), readAsset("forest.js")
	p.Rows = f.Rows(RowOptions{People: o.People, OpenLevels: f.openLevels(o)})
	p.Policy = "default-src 'none'; script-src " + hashOf(script) + "; style-src " + hashOf(style) + " " + hashOf(unfolded) +
		"; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	// The three are files of this package, and the policy names their hashes.
	p.Style, p.Unfolded, p.Script = template.CSS(style), template.CSS(unfolded), template.JS(script) //nolint:gosec // no text of others
	return "", Templates.ExecuteTemplate(w, "page", p)
}

// openLevels returns how many levels of a page begin unfolded; -1 for all.
func (f *Forest) openLevels(o Options) int {
	switch {
	case o.Depth >= 0:
		return o.Depth
	case f.Counts.Rows > maxUnfolded:
		return 0
	}
	return -1
}

func hashOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func readAsset(name string) string {
	data, err := Assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}
