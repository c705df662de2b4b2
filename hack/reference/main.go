// Reference writes the pages of docs/reference that follow from the code: the API from the CustomResourceDefinitions, the flags and
// commands from the programs' own help, the metrics and the reasons from the Go sources, the packages from their comments. Each text has
// one source: the comment of a type, a constant or a package, or the help of a flag or a metric.
//
//	go run ./hack/reference [DIR]
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pages maps each page of docs/reference that this program writes to the function that returns its text.
var pages = map[string]func(context.Context) (string, error){
	"api.md":      apiPage,
	"chart.md":    chartPage,
	"flags.md":    flagsPage,
	"commands.md": commandsPage,
	"metrics.md":  metricsPage,
	"packages.md": packagesPage,
	"reasons.md":  reasonsPage,
}

func main() {
	dir := "docs/reference"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	for name, write := range pages {
		text, err := write(ctx)
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// page collects the text of a page.
type page struct{ strings.Builder }

// newPage begins a page. The first line tells editors of the page where its text comes from.
func newPage(title, source, introduction string) *page {
	p := &page{}
	p.line("<!-- `make docs` writes this page from %s. -->", source)
	p.line("# %s\n\n%s", title, introduction)
	return p
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// heading begins a section, with a table of these columns unless there are none.
func (p *page) heading(text string, columns ...string) {
	p.line("\n## %s", text)
	p.table(columns...)
}

// table begins a table.
func (p *page) table(columns ...string) {
	if len(columns) == 0 {
		return
	}
	p.line("| %s |", strings.Join(columns, " | "))
	p.line("%s|", strings.Repeat("|---", len(columns)))
}

// row adds a row to the table. A line break or a pipe would end the cell.
func (p *page) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`)
	}
	p.line("| %s |", strings.Join(cells, " | "))
}

// code returns text as code, or nothing for an empty text.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// sentence returns text with a full stop. A first letter in lower case stays: it may begin the name of a field.
func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
