package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// coverage counts how many Inputs of each kind came to a replica in each state.
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

// inputs are the rows of the table.
var inputs = append(
	namesIn("copyengine", "BodyRead CopyWritten DriftFound Elected FollowDue ForestChanged Listed LossFound ObjectGone ObjectSeen "+
		"RemovalChecked RightsAsked SourceRead Started Ticked WatchChanged"),
	namesIn("distribute", "CopiesListed CopyGone CopySeen CopyWritten DefinitionChanged DistributionGone DistributionSeen DistributionsListed"+
		" DriftFound Elected ForestChanged KindChanged ObstacleGone ObstacleSeen ObstaclesFound ObstaclesListed Started StatusWritten")...)

func namesIn(pkg, names string) (all []string) {
	for name := range strings.FieldsSeq(names) {
		all = append(all, pkg+"."+name)
	}
	return all
}

// Why a standby does not meet some Inputs.
const (
	leadersWork     = "only a leader takes keys, ticks, scrubs and asks for rights"
	leadersRequests = "only a leader sends requests; a deposed one finishes a few"
	leadersWatches  = "only a leader follows obstacles; a deposed one ends soon"
)

// reasons say why a standby does not meet an Input.
var reasons = map[string]string{
	"Elected": "a replica leads from its election on",
	"Started": leadersWork, "Ticked": leadersWork, "RightsAsked": leadersWork, "FollowDue": leadersWork, "DriftFound": leadersWork,
	"BodyRead": leadersRequests, "SourceRead": leadersRequests, "LossFound": leadersRequests, "RemovalChecked": leadersRequests,
	"CopyWritten": leadersRequests, "ObstaclesFound": leadersRequests, "StatusWritten": leadersRequests,
	"ObstacleSeen": leadersWatches, "ObstacleGone": leadersWatches, "ObstaclesListed": leadersWatches,
}

// reasonOf returns why a pair is not met; "" for a pair that enough histories meet.
func reasonOf(pair covered) string {
	_, input, _ := strings.Cut(pair.input, ".")
	who, state, _ := strings.Cut(pair.state, " ")
	switch {
	case who == "standby" && reasons[input] != "":
		return reasons[input]
	case input == "DriftFound":
		return "a pass of the scrub reads only kinds that are active"
	case state == "syncing" && strings.HasPrefix(input, "Obstacle"):
		return "a leader follows obstacles only of a kind that it has listed"
	case state == "pending" && input == "CopyGone":
		return "the watch of a kind that is not served shows nothing"
	case state == "pending" && input == "DistributionsListed":
		return "it comes once after a start, when hardly any kind is known to be pending"
	}
	return ""
}

// print prints a table: Inputs as rows, states as columns; then how many pairs were met, and why the others were not.
func (c coverage) print(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "input\t"+strings.Join(states, "\t"))
	met, missing := 0, map[string]int{}
	for _, input := range inputs {
		fmt.Fprint(table, input)
		for _, state := range states {
			pair := covered{input, state}
			if fmt.Fprintf(table, "\t%d", c[pair]); c[pair] > 0 {
				met++
			} else if reason := reasonOf(pair); reason != "" {
				missing[reason]++
			} else {
				missing["NOT MET: "+input+" by a "+state]++
			}
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
	for _, pair := range slices.SortedFunc(maps.Keys(c), func(a, b covered) int { return strings.Compare(a.state, b.state) }) {
		if pair.input == ended {
			fmt.Fprintf(to, "%6d ends as %s\n", c[pair], pair.state)
		}
	}
	fmt.Fprintf(to, "%d of %d pairs of an Input and a state were met; the others:\n", met, len(inputs)*len(states))
	for _, reason := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(to, "%4d  %s\n", missing[reason], reason)
	}
}

// ended is the input under which the reasons are counted that condition Ready of a ResourceDistribution has at the end.
const ended = "end of a ResourceDistribution"

// lacking returns what any 5,000 histories meet, and these have not: each Input of an active leader that is not rare, and the usual ends of
// ResourceDistributions. Without that, the invariants would hold for want of events.
func (c coverage) lacking() (all []string) {
	for _, input := range inputs {
		isRare := strings.HasSuffix(input, ".DriftFound") || strings.HasSuffix(input, ".ObstacleGone")
		if pair := (covered{input, "leader active"}); c[pair] == 0 && !isRare {
			all = append(all, pair.input)
		}
	}
	for reason := range strings.FieldsSeq("Distributed Conflict Skipped Suspended NamespaceNotFound") {
		if c[covered{ended, reason}] == 0 {
			all = append(all, reason)
		}
	}
	return all
}

// unknown returns the Inputs that are not in the table.
func (c coverage) unknown() (all []string) {
	for pair := range c {
		if pair.input != ended && !slices.Contains(inputs, pair.input) && !slices.Contains(all, pair.input) {
			all = append(all, pair.input)
		}
	}
	return all
}
