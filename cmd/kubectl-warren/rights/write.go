package rights

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// none fills an empty cell, as in kubectl's tables.
const none = "<none>"

// Write writes a line for each subject, and below it what the subject may do, in 80 columns unless a name is longer.
func (a *Access) Write(w io.Writer) error {
	for _, e := range a.Subjects {
		terminal.Fprintf(w, "%s %s\n", e.Kind, nameOfSubject(e.Subject))
		writeFact(w, "lists", e.Lists)
		if a.isUnknown(e) {
			writeFact(w, "rights", []Answer{Unknown})
			continue
		}
		writeFact(w, "without sudo", e.WithoutSudo)
		writeFact(w, "with sudo", e.WithSudo)
		writeFact(w, "on request", e.rolesOnRequest())
		if len(e.Namespaces) > 0 {
			writeFact(w, "namespaces", []string{a.namespacesOfEntry(e)})
		}
		label := "via"
		for _, way := range describeBriefly(e.Via) {
			writeFact(w, label, []string{way})
			label = ""
		}
	}
	return a.writeRemarks(w)
}

// factWidth is what a label leaves of a terminal's 80 columns.
const factWidth = 64

// writeFact writes a label and a list beside it, broken between words; nothing for an empty list.
func writeFact[T ~string](w io.Writer, label string, list []T) {
	if len(list) == 0 {
		return
	}
	line := ""
	for word := range strings.FieldsSeq(joinTableCell(list)) {
		if line != "" && len(line)+1+len(word) > factWidth {
			terminal.Fprintf(w, "  %-13s %s\n", label, line)
			label, line = "", ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	terminal.Fprintf(w, "  %-13s %s\n", label, line)
}

// accessTable is the report as a table, one line for each subject.
type accessTable struct{ *Access }

func (a accessTable) Write(w io.Writer) error {
	table := printers.GetNewTabWriter(w)
	if len(a.Subjects) > 0 {
		fmt.Fprintln(table, "KIND\tNAME\tLISTS\tWITHOUT-SUDO\tWITH-SUDO\tNAMESPACES\tVIA")
	}
	for _, e := range a.Subjects {
		rights := []any{joinTableCell(e.WithoutSudo), joinTableCell(e.RolesWithSudo()), a.namespacesOfEntry(e),
			joinTableCell(describeBriefly(e.Via))}
		if a.isUnknown(e) {
			rights = []any{Unknown, Unknown, Unknown, Unknown}
		}
		terminal.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			append([]any{e.Kind, nameOfSubject(e.Subject), joinTableCell(e.Lists)}, rights...)...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.writeRemarks(w)
}

// RolesWithSudo returns the roles of column WITH-SUDO.
func (e Entry) RolesWithSudo() []string {
	roles := slices.Clone(e.WithSudo)
	for _, role := range e.OnRequest {
		roles = append(roles, role+" ("+DescribeOnRequest(e.Until)+")")
	}
	return roles
}

// rolesOnRequest returns the roles of the line "on request".
func (e Entry) rolesOnRequest() []string {
	if e.Until == nil {
		return e.OnRequest
	}
	return Entry{OnRequest: e.OnRequest, Until: e.Until}.RolesWithSudo()
}

// isUnknown reports whether the caller could read nothing about the subject's rights.
func (a *Access) isUnknown(e Entry) bool { return len(e.Via) == 0 && len(a.Incomplete) > 0 }

func (a *Access) writeRemarks(w io.Writer) error {
	writeLeftOutCount(w, a.LeftOut)
	return writeIncomplete(w, a.Incomplete)
}

// namespacesOfEntry returns the namespaces of an entry; "all" for the whole tree.
func (a *Access) namespacesOfEntry(e Entry) string {
	if len(a.Namespaces) > 0 && len(e.Namespaces) == len(a.Namespaces) {
		return "all"
	}
	return joinTableCell(e.Namespaces)
}

// describeBriefly returns via in words, without the namespaces of the bindings, which column NAMESPACES shows. So the
// copies of one binding appear once.
func describeBriefly(via []Via) []string {
	var told []string
	for _, v := range via {
		if v.Binding != nil {
			binding := *v.Binding
			binding.Namespace = ""
			v.Binding = &binding
		}
		if text := v.String(); !slices.Contains(told, text) {
			told = append(told, text)
		}
	}
	return told
}

func nameOfSubject(s v1alpha1.Subject) string {
	if s.Kind == v1alpha1.SubjectServiceAccount {
		return s.Namespace + "/" + s.Name
	}
	return s.Name
}

func joinTableCell[T ~string](list []T) string {
	if len(list) == 0 {
		return none
	}
	var text strings.Builder
	for i, one := range list {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(string(one))
	}
	return text.String()
}

// Write writes the report as a table, one line for each holder: a subject, with or without sudo.
func (c *WhoCan) Write(w io.Writer) error {
	table := printers.GetNewTabWriter(w)
	if len(c.Subjects) > 0 {
		fmt.Fprintln(table, "SUBJECT\tSUDO\tVIA")
	} else {
		where := ""
		if len(c.Incomplete) > 0 {
			where = " in what you may read"
		}
		terminal.Fprintf(w, "No one found%s who can %s.\n", where, c.Question)
	}
	for _, h := range c.Subjects {
		terminal.Fprintf(table, "%s\t%s\t%s\n", h.Subject, describeSudo(h.Sudo, h.OnRequest, h.Until), joinTableCell(describeVia(h.Via)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeLeftOutCount(w, c.LeftOut)
	writeNoteLine(w, c.Note)
	return writeIncomplete(w, c.Incomplete)
}

func describeVia(via []Via) []string {
	var text []string
	for _, v := range via {
		text = append(text, v.String())
	}
	return text
}

// describeSudo is column SUDO.
func describeSudo(sudo, asked bool, until *metav1.Time) string {
	if asked {
		return DescribeOnRequest(until)
	}
	return formatYesNo(sudo)
}

func formatYesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Write writes whom and what the report is about, and a line for each case.
func (y *Why) Write(w io.Writer) error {
	terminal.Fprintf(w, "%s: %s\n", y.Identity.labelInReports(), y.Question)
	table := printers.GetNewTabWriter(w)
	fmt.Fprintln(table, "SUDO\tALLOWED\tVIA")
	for _, c := range y.Cases {
		via := joinTableCell(describeVia(c.Via))
		if c.Note != "" {
			via = c.Note
		}
		terminal.Fprintf(table, "%s\t%s\t%s\n", describeSudo(c.Sudo, c.OnRequest, c.Until), c.Allowed, via)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeNoteLine(w, y.Note)
	return writeIncomplete(w, y.Incomplete)
}

func writeLeftOutCount(w io.Writer, count int) {
	if count > 0 {
		terminal.Fprintf(w, "left out: %d parts of Kubernetes itself; --system shows them\n", count)
	}
}

func writeNoteLine(w io.Writer, note string) {
	if note != "" {
		terminal.Fprintf(w, "note: %s\n", note)
	}
}

func writeIncomplete(w io.Writer, unread []string) error {
	for _, what := range unread {
		if _, err := terminal.Fprintln(w, "incomplete: "+what); err != nil {
			return err
		}
	}
	return nil
}
