// Package oracle judges what the operator has made of a cluster in test/whole. It shares no code with what it judges: it reads objects as
// JSON, and knows labels and names from the documentation.
package oracle

import "fmt"

// The names of the oracles.
const (
	Restart    = "restart"
	Quiet      = "quiet"
	Generation = "generation"
	Shares     = "shares"
	People     = "people"
	Others     = "others"
	Sudo       = "sudo"
)

// Finding is something that should not be.
type Finding struct{ Oracle, Text string }

// String describes the finding in one line.
func (f Finding) String() string { return f.Oracle + ": " + f.Text }

func findingOf(oracle, format string, args ...any) Finding {
	return Finding{oracle, fmt.Sprintf(format, args...)}
}
