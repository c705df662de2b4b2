package get

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/warren-tenancy/warren/internal/text"
)

// The formats with columns of the user's own, as kubectl has them.
const (
	customColumns     = "custom-columns"
	customColumnsFile = "custom-columns-file"
)

// columnsPrinter prints a line for each object, with columns that the user has chosen. It implements printers.ResourcePrinter.
type columnsPrinter struct {
	heads []string
	paths []*jsonpath.JSONPath
	// headless says that the heads are not to be printed, or not again.
	headless bool
}

// newColumnsPrinter reads a format such as custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[*].image; nil if it is another one.
func newColumnsPrinter(format string, noHeaders bool) (printers.ResourcePrinter, error) {
	word, said, _ := strings.Cut(format, "=")
	switch word {
	case customColumns:
		return columnsOf(splitColumns(said), noHeaders)
	case customColumnsFile:
		heads, paths, err := readColumns(said)
		if err != nil {
			return nil, err
		}
		return columnsOf(pair(heads, paths), noHeaders)
	}
	return nil, nil // the caller asks the other formats then
}

// splitColumns splits at commas that stand outside of brackets: those inside belong to a path.
func splitColumns(said string) (columns []string) {
	depth, start := 0, 0
	for i, r := range said {
		switch r {
		case '[', '(', '{':
			depth++
		case ']', ')', '}':
			depth--
		case ',':
			if depth == 0 {
				columns, start = append(columns, said[start:i]), i+1
			}
		}
	}
	return append(columns, said[start:])
}

// readColumns reads a file with the heads in its first line and the paths in its second.
func readColumns(path string) (heads, paths []string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("-o %s: %w", customColumnsFile, err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) == 2 {
		heads, paths = strings.Fields(lines[0]), strings.Fields(lines[1])
	}
	if len(heads) == 0 || len(heads) != len(paths) {
		return nil, nil, fmt.Errorf("-o %s: %s must have two lines: the heads of the columns, and as many paths such as .metadata.name, with spaces between", customColumnsFile, path)
	}
	return heads, paths, nil
}

func pair(heads, paths []string) []string {
	columns := make([]string, len(heads))
	for i := range heads {
		columns[i] = heads[i] + ":" + paths[i]
	}
	return columns
}

func columnsOf(columns []string, noHeaders bool) (printers.ResourcePrinter, error) {
	p := &columnsPrinter{headless: noHeaders}
	for _, column := range columns {
		head, said, _ := strings.Cut(column, ":")
		if head == "" || said == "" {
			return nil, fmt.Errorf("-o %s: column %q must be HEAD:PATH, such as NAME:.metadata.name", customColumns, column)
		}
		path := jsonpath.New(head).AllowMissingKeys(true)
		if err := path.Parse(relaxed(said)); err != nil {
			return nil, fmt.Errorf("-o %s: path %q of column %s: %w", customColumns, said, head, err)
		}
		p.heads, p.paths = append(p.heads, head), append(p.paths, path)
	}
	return p, nil
}

// bare matches a path with or without its braces and its first dot.
var bare = regexp.MustCompile(`^\{?\.?(.*?)\}?$`)

// relaxed is a path as JSONPath wants it: metadata.name, .metadata.name and {.metadata.name} are one.
func relaxed(path string) string { return "{." + bare.FindStringSubmatch(path)[1] + "}" }

// PrintObj implements printers.ResourcePrinter.
func (p *columnsPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	table := printers.GetNewTabWriter(out)
	if !p.headless {
		fmt.Fprintln(table, strings.Join(p.heads, "\t"))
		p.headless = true
	}
	line := func(item runtime.Object) error { return p.printLine(item, table) }
	var err error
	if meta.IsListType(object) {
		err = meta.EachListItem(object, line)
	} else {
		err = line(object)
	}
	return errors.Join(err, table.Flush())
}

func (p *columnsPrinter) printLine(object runtime.Object, out io.Writer) error {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("-o %s: %T has no fields", customColumns, object)
	}
	cells := make([]string, len(p.paths))
	for i, path := range p.paths {
		results, err := path.FindResults(u.Object)
		if err != nil {
			return fmt.Errorf("-o %s: column %s: %w", customColumns, p.heads[i], err)
		}
		cells[i] = cellOf(results)
	}
	_, err := fmt.Fprintln(out, strings.Join(cells, "\t"))
	return err
}

// cellOf are all values that a path has found, with commas between.
func cellOf(results [][]reflect.Value) string {
	var values []string
	for _, found := range results {
		for _, value := range found {
			if value.CanInterface() && value.Interface() != nil {
				values = append(values, text.Escape(fmt.Sprint(value.Interface())))
			}
		}
	}
	if len(values) == 0 {
		return "<none>"
	}
	return strings.Join(values, ",")
}
