package get

import (
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/internal/text"
)

// columnsPrinter is kubectl's printer of columns that the user has chosen. Before it prints an object, it escapes all
// characters that a terminal would obey, among them the line feed: kubectl escapes only some.
type columnsPrinter struct{ printers.ResourcePrinter }

// PrintObj implements printers.ResourcePrinter.
func (p columnsPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	switch o := object.(type) {
	case *unstructured.UnstructuredList:
		for i := range o.Items {
			escapeStrings(o.Items[i].Object)
		}
	case *unstructured.Unstructured:
		escapeStrings(o.Object)
	}
	return p.ResourcePrinter.PrintObj(object, out)
}

// escapeStrings returns the value with its strings escaped. It changes maps and lists in place.
func escapeStrings(value any) any {
	switch v := value.(type) {
	case string:
		return text.Escape(v)
	case map[string]any:
		for key := range v {
			v[key] = escapeStrings(v[key])
		}
	case []any:
		for i := range v {
			v[i] = escapeStrings(v[i])
		}
	}
	return value
}
