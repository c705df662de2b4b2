package simulation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// shrink returns the shortest script it can find that fails the same invariant: it takes out halves, quarters and so on of the events,
// until no single event can be taken out (delta debugging).
func shrink(s script, invariant string) script {
	for size := max(1, len(s.events)/2); ; {
		shorter, found := takeOut(s, size, invariant)
		switch {
		case found:
			s, size = shorter, min(size, max(1, len(shorter.events)/2))
		case size == 1:
			return s
		default:
			size /= 2
		}
	}
}

// takeOut returns the script without some events. It takes out size of them in a row, wherever the shorter script still fails in the same
// way.
func takeOut(s script, size int, invariant string) (shorter script, found bool) {
	for at := 0; at < len(s.events); {
		try := s
		try.events = slices.Delete(slices.Clone(s.events), at, min(at+size, len(s.events)))
		if wrong := run(try, nil, nil); wrong != nil && wrong.Invariant == invariant {
			s, found = try, true
		} else {
			at += size
		}
	}
	return s, found
}

// explain returns a script, and what happens in it, as a table.
func explain(s script) string {
	var text strings.Builder
	rows := 0
	wrong := run(s, nil, func(what string) {
		rows++
		fmt.Fprintf(&text, "%4d  %s\n", rows, what)
	})
	return fmt.Sprintf("seed %d, %d events, setup %+v\n%s      %v\n", s.seed, len(s.events), s.setup, &text, wrong)
}

// describe returns a request of a State in words.
func describe(request any) string {
	switch one := request.(type) {
	case copyengine.ReadSource:
		return "the read of source " + one.Source.String()
	case copyengine.FindLoss:
		return "the look for lost source " + one.Source.String()
	case copyengine.CheckRemoval:
		return "the check before the removal of " + one.Slot.String()
	case copyengine.WriteCopy:
		return fmt.Sprintf("the write (verb %d) of %s, source %s", one.Action.Verb, one.Slot, one.Action.Source)
	case distribute.WriteCopy:
		return fmt.Sprintf("the write (verb %d) of distributed %s", one.Action.Verb, one.Slot)
	}
	return fmt.Sprintf("a %T", request)
}
