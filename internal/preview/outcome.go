package preview

import (
	"fmt"
	"maps"
	"slices"
)

// outcome collects what a settlement has planned so far.
type outcome struct {
	writes []Write
	// held are, by tenant and name of the namespace, the writes that something holds back in this round.
	held  map[string]Write
	notes []string
}

func (o *outcome) hold(name, tenant, format string, args ...any) {
	o.held[tenant+"/"+name] = Write{Verb: Held, Kind: "Namespace", Name: name, Tenant: tenant, Reason: fmt.Sprintf(format, args...)}
}

func (o *outcome) note(format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

// closePlan adds the writes that the last round held back to the plan, and sorts the notes.
func (o *outcome) closePlan() {
	for _, name := range slices.Sorted(maps.Keys(o.held)) {
		o.writes = append(o.writes, o.held[name])
	}
	slices.Sort(o.notes)
	o.notes = slices.Compact(o.notes)
}
