package doctor

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/internal/text"
)

// mostNamed is how many checks of one result the summary names.
const mostNamed = 5

// summariseChecks returns one line: which checks ended how, the worst first.
func summariseChecks(checks []Check) string {
	names := map[Status][]string{}
	for _, c := range checks {
		names[c.Status] = append(names[c.Status], c.Name)
	}
	var parts []string
	for _, result := range []struct {
		status    Status
		one, more string
	}{{Error, "error", "errors"}, {Warning, "warning", "warnings"}} {
		found := names[result.status]
		if len(found) == 0 {
			continue
		}
		part := text.Count(len(found), result.one, result.more) + ": " +
			strings.Join(found[:min(len(found), mostNamed)], ", ")
		if more := len(found) - mostNamed; more > 0 {
			part += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, part)
	}
	return terminal.Escape(strings.Join(append(parts, fmt.Sprintf("%d of %d checks are ok", len(names[OK]), len(checks))), "; ")) + "\n"
}

// colourChecks colours the first word of each line of a table of checks, if the output is a terminal and NO_COLOR is
// not set.
func colourChecks(table []byte, isTerminal bool) []byte {
	if _, unwanted := os.LookupEnv("NO_COLOR"); unwanted || !isTerminal {
		return table
	}
	var coloured bytes.Buffer
	for line := range bytes.Lines(table) {
		for status, colour := range map[Status]string{Error: "31", Warning: "33", OK: "32"} {
			if rest, is := bytes.CutPrefix(line, []byte(string(status)+" ")); is {
				line = append([]byte("\x1b["+colour+"m"+string(status)+"\x1b[0m "), rest...)
				break
			}
		}
		coloured.Write(line)
	}
	return coloured.Bytes()
}
