package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/warren-tenancy/warren/internal/text"
)

// table is a subcommand's answer, which can be written as a table, as CSV or as JSON.
type table struct {
	columns []string
	rows    [][]string
}

func (t *table) addRow(fields ...string) { t.rows = append(t.rows, fields) }

func (t *table) printTo(out io.Writer, format string) error {
	switch format {
	case "csv":
		w := csv.NewWriter(out)
		if err := w.Write(t.columns); err != nil {
			return err
		}
		for _, row := range t.rows {
			if err := w.Write(text.DisarmFormulas(row)); err != nil {
				return err
			}
		}
		w.Flush()
		return w.Error()
	case "json":
		objects := make([]map[string]string, 0, len(t.rows))
		for _, row := range t.rows {
			object := map[string]string{}
			for i, column := range t.columns {
				object[column] = row[i]
			}
			objects = append(objects, object)
		}
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(objects)
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.ReplaceAll(strings.Join(t.columns, "\t"), "_", " ")))
	for _, row := range t.rows {
		for i, field := range row {
			if field == "" {
				field = "-"
			}
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, text.Escape(field))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
