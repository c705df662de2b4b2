package get

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// tableOptions has the values of the flags that change how a table looks.
type tableOptions struct {
	NoHeaders, ShowLabels bool
	ColumnLabels          []string
}

// isTable reports whether the output is a table, which the API server makes.
func (o *options) isTable() bool {
	return (*o.print.OutputFormat == "" && *o.print.TemplatePrinterFlags.TemplateArgument == "") ||
		*o.print.OutputFormat == invocation.OutputWide
}

// printer prints what was found: tables, one for each kind, or objects in another form.
type printer struct {
	*options
	objects printers.ResourcePrinter // nil for a table
	table   printers.ResourcePrinter // prints tables; a watch continues the table that was printed first
}

func (o *options) newPrinter() (*printer, error) {
	if o.isTable() {
		return &printer{options: o}, nil
	}
	format := kubectlget.CustomColumnsPrintFlags{NoHeaders: o.table.NoHeaders}
	if columns, err := format.ToPrinter(*o.print.OutputFormat); !genericclioptions.IsNoCompatiblePrinterError(err) {
		return &printer{options: o, objects: columnsPrinter{columns}}, err
	}
	objects, err := o.print.ToPrinter()
	return &printer{options: o, objects: objects}, err
}

// printLists prints what was found of all kinds. For a watch, it prints the objects one by one and not as a list.
func (p *printer) printLists(streams genericiooptions.IOStreams, all []*answers, watch bool) error {
	if p.objects == nil {
		return p.printTables(streams, all)
	}
	list := listOf(all)
	if !watch {
		return p.objects.PrintObj(list, streams.Out)
	}
	for i := range list.Items {
		if err := p.objects.PrintObj(&list.Items[i], streams.Out); err != nil {
			return err
		}
	}
	return nil
}

// printTables prints a table for each kind that has objects, with an empty line between.
func (p *printer) printTables(streams genericiooptions.IOStreams, all []*answers) error {
	printed := false
	for _, a := range all {
		p.table = p.newTable(a, len(all) > 1)
		merged := a.mergedTable()
		if len(merged.Rows) == 0 {
			continue
		}
		if printed {
			terminal.Fprintln(streams.Out, "")
		}
		printed = true
		if err := p.table.PrintObj(merged, streams.Out); err != nil {
			return err
		}
	}
	if !printed && !p.watch {
		terminal.Fprintln(streams.ErrOut, "No resources found in your namespaces.")
	}
	return nil
}

func (p *printer) newTable(a *answers, withKind bool) printers.ResourcePrinter {
	return printers.NewTablePrinter(printers.PrintOptions{
		WithNamespace: true, WithKind: withKind, Kind: a.mapping.GroupVersionKind.GroupKind(),
		Wide:      *p.print.OutputFormat == invocation.OutputWide,
		NoHeaders: p.options.table.NoHeaders, ShowLabels: p.options.table.ShowLabels, ColumnLabels: p.options.table.ColumnLabels,
	})
}

// printChange prints an object that a watch has reported.
func (p *printer) printChange(object runtime.Object, out io.Writer) error {
	if p.objects != nil {
		return p.objects.PrintObj(object, out)
	}
	return p.table.PrintObj(object, out)
}

// mergedTable is the tables of all namespaces under one head.
func (a *answers) mergedTable() *metav1.Table {
	merged := &metav1.Table{}
	for _, one := range a.each {
		for _, page := range one.pages {
			table := tableOf(page)
			if len(merged.ColumnDefinitions) == 0 {
				merged.ColumnDefinitions = table.ColumnDefinitions
			}
			merged.Rows = append(merged.Rows, table.Rows...)
		}
	}
	return merged
}

// readTable converts an answer of kind Table to a Table. It returns any other answer unchanged.
func readTable(object runtime.Object) (runtime.Object, error) {
	answered, ok := object.(*unstructured.Unstructured)
	if !ok || answered.GetKind() != "Table" || answered.GroupVersionKind().Group != metav1.GroupName {
		return object, nil
	}
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answered.Object, table); err != nil {
		return nil, err
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if row.Object.Raw == nil || row.Object.Object != nil {
			continue
		}
		decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, row.Object.Raw)
		if err != nil {
			return nil, err
		}
		row.Object.Object = decoded
	}
	return table, nil
}

// tableOf returns an answer as a table. If an API service made none, the table has only the names of the objects.
func tableOf(object runtime.Object) *metav1.Table {
	if table, ok := object.(*metav1.Table); ok {
		return table
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string",
		Format: "name"}}}
	add := func(u *unstructured.Unstructured) {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{u.GetName()}, Object: runtime.RawExtension{Object: u}})
	}
	switch answered := object.(type) {
	case *unstructured.UnstructuredList:
		for i := range answered.Items {
			add(&answered.Items[i])
		}
	case *unstructured.Unstructured:
		add(answered)
	}
	return table
}
