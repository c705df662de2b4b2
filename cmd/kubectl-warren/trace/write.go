package trace

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// Write writes the trace as text.
func (t *Trace) Write(w io.Writer) error {
	terminal.Fprintf(w, "%s.\n", t.describeVerdict())
	if t.From != "" {
		terminal.Fprintf(w, "Path:  %s\nMode:  %s\n", strings.Join(t.Path, " -> "), t.Mode)
	}
	for _, note := range t.Notes {
		terminal.Fprintf(w, "Note:  %s\n", note)
	}
	if len(t.Above) == 0 {
		return nil
	}
	table := printers.GetNewTabWriter(w)
	terminal.Fprintf(table, "\nNAMESPACE\t%s\n", strings.ToUpper(t.nameObject()))
	for _, sight := range t.Above {
		terminal.Fprintf(table, "%s\t%s\n", sight.Namespace, sight.Found)
	}
	return table.Flush()
}

func (t *Trace) nameObject() string { return strings.ToLower(t.Object.Kind) + "/" + t.Object.Name }

func (t *Trace) describeVerdict() string {
	switch t.Verdict {
	case Copy:
		return fmt.Sprintf("%s in %s is a copy of that in %s", t.nameObject(), t.Object.Namespace, t.From)
	case Source:
		return fmt.Sprintf("%s in %s is a source (%s)", t.nameObject(), t.Object.Namespace, t.Mode)
	case Other:
		return fmt.Sprintf("%s in %s is neither a copy nor a source", t.nameObject(), t.Object.Namespace)
	}
	return fmt.Sprintf("There is no %s in %s", t.nameObject(), t.Object.Namespace)
}
