package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// coverage counts the Inputs of each kind that came to a State of each kind.
type coverage map[covered]int

type covered struct{ input, state string }

func (h *history) cover(r *replica, input any) {
	if h.coverage != nil {
		h.coverage[covered{strings.TrimPrefix(fmt.Sprintf("%T", input), "*"), r.stateOf()}]++
	}
}

// add adds what others have counted.
func (c coverage) add(other coverage) {
	for pair, n := range other {
		c[pair] += n
	}
}

// states are the columns of the table.
var states = []string{
	"standby syncing", "standby forbidden", "standby degraded", "standby pending", "standby active",
	"leader syncing", "leader forbidden", "leader degraded", "leader pending", "leader active",
}

// print prints a table: Inputs as rows, states as columns.
func (c coverage) print(to io.Writer) {
	inputs := map[string]bool{}
	for pair := range c {
		inputs[pair.input] = true
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "input\t"+strings.Join(states, "\t"))
	for _, input := range slices.Sorted(maps.Keys(inputs)) {
		fmt.Fprint(table, input)
		for _, state := range states {
			fmt.Fprintf(table, "\t%d", c[covered{input, state}])
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}
