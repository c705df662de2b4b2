package migrate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// outputTable is the default output format, for people: tables, without the bodies of the writes.
const outputTable = "table"

// printMigrationPlan prints the plan: tables by default, or every write as YAML or JSON.
func printMigrationPlan(inv *invocation.Invocation, o *options, p peer, plan Plan) error {
	var out strings.Builder
	if o.output.Value == outputTable {
		plan.writePlanTables(&out)
		plan.writePlanGaps(&out)
	} else if err := invocation.WriteAs(&out, o.output.Value, document{invocation.DocumentOf("MigrationPlan"), p.word,
		plan}); err != nil {
		return err
	}
	_, err := fmt.Fprint(inv.Streams.Out, out.String())
	return err
}

// writeTextTable writes a table with its headings, and an empty line after it; nothing without rows.
func writeTextTable(out io.Writer, headings []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	table := printers.GetNewTabWriter(out)
	for _, row := range append([][]string{headings}, rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			terminal.Fprintf(table, "%s", cell)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // out is in memory, or a terminal
	fmt.Fprintln(out)
}

// writePlanTables writes how many writes each phase has and, by name, which namespaces join trees, which copies are new
// and which inherited keys change.
func (p Plan) writePlanTables(out io.Writer) {
	if len(p.Steps) == 0 {
		fmt.Fprintln(out, "Nothing is to be written.")
	}
	writeTextTable(out, []string{"PHASE", "WRITES", "OBJECTS"}, p.phaseSummaryRows())
	var joins [][]string
	for _, join := range p.Joins {
		joins = append(joins, []string{cmp.Or(join.Below, "(root or template)"), strings.Join(join.Namespaces, ", ")})
	}
	writeTextTable(out, []string{"JOIN BELOW", "NAMESPACES"}, joins)
	var copies, changes [][]string
	for _, n := range p.NewCopies {
		copies = append(copies, []string{n.Kind + " " + n.From + "/" + n.Name, strings.Join(n.Namespaces, ", ")})
	}
	writeTextTable(out, []string{"COPIED ANEW BY WARREN", "INTO"}, copies)
	for _, change := range p.KeyChanges {
		changes = append(changes, []string{change.Key, valueOrNone(change.Was), valueOrNone(change.Becomes),
			strings.Join(change.Namespaces, ", ")})
	}
	writeTextTable(out, []string{"INHERITED KEY", "NOW", "THEN", "NAMESPACES"}, changes)
}

// writePlanGaps writes what has no counterpart in Warren, or needs an administrator.
func (p Plan) writePlanGaps(out io.Writer) {
	var gaps [][]string
	for _, gap := range p.Gaps {
		gaps = append(gaps, []string{gap.What, gap.Instead})
	}
	writeTextTable(out, []string{"NO COUNTERPART, OR NEEDS YOU", "INSTEAD"}, gaps)
}

// phaseSummaryRows returns a row for each phase that has steps.
func (p Plan) phaseSummaryRows() (rows [][]string) {
	for _, phase := range phaseOrder {
		writes, kinds := 0, map[string]int{}
		for _, step := range p.Steps {
			if step.Phase == phase {
				writes++
				kinds[step.Object.Kind]++
			}
		}
		var objects []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			objects = append(objects, fmt.Sprintf("%d %s", kinds[kind], kind))
		}
		if writes > 0 {
			rows = append(rows, []string{string(phase), fmt.Sprint(writes), strings.Join(objects, ", ")})
		}
	}
	return rows
}
