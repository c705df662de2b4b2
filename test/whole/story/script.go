package story

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Event is one thing that somebody does, or that goes wrong, with the numbers that decide about what.
type Event struct {
	deed    int // in deeds
	A, B, C int
	// Then is how much virtual time passes afterwards.
	Then time.Duration
}

// Script is a history before it has happened. The same script is nearly the same history each time: what goroutines of one process do at
// one moment has no order.
type Script struct {
	Seed   uint64
	Events []Event
}

// beginning is how many events are drawn from the first deeds, which make tenants and trees.
const beginning, firsts = 12, 2

// NewScript returns the script of a seed.
func NewScript(seed uint64, events int) Script {
	return drawScript(seed, events, beginning, firsts, func(d deed) int { return d.weight })
}

// NewRequestScript returns the script of a seed that tells of sudo on request.
func NewRequestScript(seed uint64, events int) Script {
	return drawScript(seed, events, 3, 1, func(d deed) int { return d.asked })
}

func drawScript(seed uint64, events, beginning, firsts int, weight func(deed) int) Script {
	r := rand.New(rand.NewPCG(seed, 2))
	s := Script{Seed: seed}
	for i := range events {
		from := deeds
		if i < beginning { // without a tree, most of the rest has nothing to change
			from = deeds[:firsts]
		}
		total := 0
		for _, d := range from {
			total += weight(d)
		}
		at, chosen := r.IntN(total), 0
		for at >= weight(deeds[chosen]) {
			at -= weight(deeds[chosen])
			chosen++
		}
		s.Events = append(s.Events, Event{deed: chosen, A: r.IntN(1 << 20), B: r.IntN(1 << 20), C: r.IntN(1 << 20), Then: drawPause(r)})
	}
	return s
}

// drawPause returns mostly a moment, and sometimes as long as the operator's own clocks need.
func drawPause(r *rand.Rand) time.Duration {
	switch n := r.IntN(20); {
	case n < 8:
		return time.Duration(r.IntN(50)) * time.Millisecond
	case n < 18:
		return time.Duration(r.IntN(4000)) * time.Millisecond
	}
	return time.Duration(r.IntN(60)) * time.Second
}

// String prints the script as a table.
func (s Script) String() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "seed %d, %d events\n", s.Seed, len(s.Events))
	for i, e := range s.Events {
		fmt.Fprintf(b, "%4d  %-28s %8d %8d %8d  then %s\n", i, deeds[e.deed].name, e.A, e.B, e.C, e.Then)
	}
	return b.String()
}

// Shrink leaves out what is not needed for a script to fail. fails runs a script and reports whether it fails as before. Runs differ a
// little, so a script counts as failing if one of a few tries fails. It stops after a real time.
func Shrink(s Script, fails func(Script) bool, within time.Duration) Script {
	end := time.Now().Add(within)
	for size := len(s.Events) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(s.Events) && time.Now().Before(end); {
			shorter := Script{Seed: s.Seed}
			shorter.Events = append(append(shorter.Events, s.Events[:from]...), s.Events[from+size:]...)
			if first := fails(shorter); first || fails(shorter) {
				s = shorter
			} else {
				from += size
			}
		}
	}
	return s
}
