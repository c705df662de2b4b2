package describe

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// Write writes the description as text.
func (d *Namespace) Write(w io.Writer) error {
	table := printers.GetNewTabWriter(w)
	for _, row := range [][2]string{
		{"Name", d.Name}, {"Type", string(d.Type)}, {"Phase", d.Phase}, {"Root", tree.OrNone(d.Root)}, {"Parent", tree.OrNone(d.Parent)},
		{"Template", tree.OrNone(d.Template)},
		{"Bound", strconv.FormatBool(d.Bound)}, {"Depth", d.describeDepth()},
		{"Children", tree.OrNone(strings.Join(d.Children, ", "))}, {"Instances", tree.OrNone(strings.Join(d.Instances, ", "))},
		{"Cascading deletion", d.Cascading.String()},
	} {
		terminal.Fprintf(table, "%s:\t%s\n", row[0], row[1])
	}
	switch {
	case d.Limits != nil:
		terminal.Fprintf(table, "Limits:\t%s\n", d.Limits)
	case d.HasNoLimits():
		terminal.Fprintf(table, "Limits:\t<none>\n")
	default:
		terminal.Fprintf(table, "Limits:\t<unknown>\n")
	}
	if d.Budget != nil {
		terminal.Fprintf(table, "Budget:\t%s\n", BudgetText(d.Budget))
	}
	if d.Share != nil {
		for _, sentence := range d.Share.Sentences() {
			terminal.Fprintf(table, "Share:\t%s\n", sentence)
		}
	}
	if d.Billing != nil {
		terminal.Fprintf(table, "Cost center:\t%s\n", tree.OrNone(d.Billing.CostCenter))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return d.writeLists(w)
}

// HasNoLimits reports whether the namespace is in no tree, so that no LNamespace limits it.
func (d *Namespace) HasNoLimits() bool { return d.Root == "" && d.Parent == "" }

func (d *Namespace) describeDepth() string {
	if d.Depth == nil {
		return "<none>"
	}
	return strconv.Itoa(*d.Depth)
}

// String names which namespace allows the deletion, if any.
func (c Cascading) String() string {
	if !c.Allowed {
		return "allowed neither here nor above"
	}
	return "allowed by " + c.By
}

// String is the amount used, and the limit. String includes copies and bytes only if the LNamespace limits them,
// because the configuration's limits can't be read.
func (l *Limits) String() string {
	text := fmt.Sprintf("sub-namespaces %s, depth %s", l.SubNamespaces, l.Depth)
	if l.Copies != nil {
		text += fmt.Sprintf(", at most %d copies", *l.Copies)
	}
	if l.Bytes != nil {
		text += fmt.Sprintf(", at most %d bytes in copies", *l.Bytes)
	}
	return text
}

// BudgetText is the amount used, and the limit, of each resource.
func BudgetText(b *v1alpha1.BudgetStatus) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(b.Hard)) {
		used, hard := b.Used[key], b.Hard[key]
		parts = append(parts, fmt.Sprintf("%s %s of %s", key, used.String(), hard.String()))
	}
	return strings.Join(parts, ", ")
}

func (u Usage) String() string {
	if u.Limit == nil {
		return fmt.Sprintf("%d (no limit in LNamespace; see configuration)", u.Used)
	}
	return fmt.Sprintf("%d of %d", u.Used, *u.Limit)
}

func (d *Namespace) writeLists(w io.Writer) error {
	var inherited, resources, conditions, events [][]string
	for _, i := range d.Inherited {
		inherited = append(inherited, []string{i.Kind, i.Key, i.Value, i.From})
	}
	for _, r := range d.Resources {
		from := r.From
		switch {
		case r.From != "" && r.Problem != "":
			from = "(no copy from " + r.From + ": " + r.Problem + ")"
		case r.Problem != "":
			from = "(not copied: " + r.Problem + ")"
		case from == "":
			from = "(source)"
		}
		resources = append(resources, []string{r.Kind, r.Name, from, r.Mode})
	}
	for _, c := range d.Conflicts {
		from := "(no copy from " + c.From + ": another object has that name; rename or delete it)"
		resources = append(resources, []string{c.Kind, c.Name, from, ""})
	}
	for _, c := range d.Conditions {
		conditions = append(conditions, []string{c.Type, string(c.Status), c.Reason, c.Message})
	}
	for _, e := range d.Events {
		events = append(events, []string{duration.HumanDuration(time.Since(e.Time.Time)), e.Type, e.Reason, e.Object, e.Message})
	}
	for _, list := range []struct {
		title, head string
		rows        [][]string
	}{
		{"Inherited", "KIND\tKEY\tVALUE\tFROM", inherited},
		{"Resources", "KIND\tNAME\tFROM\tMODE", resources},
		{"Conditions", "TYPE\tSTATUS\tREASON\tMESSAGE", conditions},
		{"Events", "AGE\tTYPE\tREASON\tOBJECT\tMESSAGE", events},
	} {
		if err := writeList(w, list.title, list.head, list.rows); err != nil {
			return err
		}
	}
	if d.EventsLeftOut > 0 {
		terminal.Fprintf(w, "  %d older Events are left out\n", d.EventsLeftOut)
	}
	if len(d.Unlisted) > 0 {
		terminal.Fprintf(w, "Not shown:  %s: you may not list these kinds\n", strings.Join(d.Unlisted, ", "))
	}
	return nil
}

func writeList(w io.Writer, title, head string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := terminal.Fprintf(w, "%s:  <none>\n", title)
		return err
	}
	terminal.Fprintf(w, "%s:\n", title)
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "  "+head)
	for _, row := range rows {
		for i := range row {
			row[i] = terminal.Escape(row[i])
		}
		fmt.Fprintln(table, "  "+strings.Join(row, "\t"))
	}
	return table.Flush()
}
