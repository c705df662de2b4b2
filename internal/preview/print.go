package preview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/warren-tenancy/warren/internal/text"
)

// WriteTable writes a line for each write, then the number of writes and the notes.
func (p *Plan) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	if len(p.Writes) > 0 {
		fmt.Fprintln(table, "VERB\tKIND\tNAMESPACE\tNAME\tSOURCE\tREASON")
	}
	for _, one := range p.Writes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", one.Verb, one.Kind, orNone(one.Namespace), one.Name, orNone(one.Source),
			text.Escape(one.Reason))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return p.writeSum(w)
}

// WriteCounts writes a line for each kind and tenant, then the number of writes and the notes.
func (p *Plan) WriteCounts(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	if len(p.Writes) > 0 {
		fmt.Fprintln(table, "KIND\tTENANT\tCREATE\tUPDATE\tDELETE\tCONFLICT\tHELD")
	}
	for _, c := range p.Counts() {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", strings.TrimSuffix(c.Kind+"."+c.Group, "."), orNone(c.Tenant), c.Creates, c.Updates,
			c.Deletes, c.Conflicts, c.Held)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return p.writeSum(w)
}

func (p *Plan) writeSum(w io.Writer) error {
	sum := p.Sum()
	var lines strings.Builder
	if sum.Creates+sum.Updates+sum.Deletes+sum.Conflicts+sum.Held == 0 {
		lines.WriteString("Nothing is to be written")
	} else {
		fmt.Fprintf(&lines, "%d to create, %d to update, %d to delete", sum.Creates, sum.Updates, sum.Deletes)
	}
	if sum.Conflicts > 0 {
		fmt.Fprintf(&lines, "; %d can't be written, because an unrelated object has the name", sum.Conflicts)
	}
	if sum.Held > 0 {
		fmt.Fprintf(&lines, "; %d held back", sum.Held)
	}
	lines.WriteString(".\n")
	for _, note := range p.Notes {
		fmt.Fprintf(&lines, "Not in this plan: %s.\n", text.Escape(note))
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

func orNone(value string) string {
	if value == "" {
		return "<none>"
	}
	return value
}
