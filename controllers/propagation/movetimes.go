package propagation

import (
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// moves measure, for a metric alone, how long namespaces with another parent take until all copies below them are what they should be. The
// package comment says what carries out a move. moves are not safe for concurrent use.
type moves map[string]*move // by the namespace that moved

// move is the move of one namespace, with all namespaces below it, that is not complete yet.
type move struct {
	since time.Time
	next  map[string]bool         // namespaces whose slots were not planned since the move
	left  map[propagate.Slot]bool // slots that are still to be written
}

// begin starts to measure the namespaces that have got another parent in a change of the forest. A newer move of a namespace takes the place
// of an older one that is not complete.
func (m moves) begin(c view.Change, now time.Time) {
	for _, name := range c.Namespaces {
		old, n := c.Old.Namespace(name), c.New.Namespace(name)
		switch {
		case n == nil:
			delete(m, name)
		case old != nil && old.UID == n.UID && old.Parent() != n.Parent():
			m[name] = &move{since: now, next: map[string]bool{}, left: map[propagate.Slot]bool{}}
		}
	}
	if len(m) == 0 {
		return
	}
	for _, namespace := range c.Namespaces {
		for _, above := range append(slices.Clone(c.New.Place(namespace).Path), namespace) {
			if way := m[above]; way != nil {
				way.next[namespace] = true
			}
		}
	}
}

// looked notes which of slots are still to be written in namespace because of moves, and returns when those moves began that are complete
// now.
func (m moves) looked(namespace string, slots []propagate.Slot, plan func(propagate.Slot) propagate.Action) (ended []time.Time) {
	for name, way := range m {
		if !way.next[namespace] {
			continue
		}
		delete(way.next, namespace)
		for _, slot := range slots {
			action := plan(slot)
			if _, writes := verbs[action.Verb]; writes || action.Verb == propagate.Look || action.Reason == v1alpha1.ReasonWaitingForRemoval {
				way.left[slot] = true
			}
		}
		ended = append(ended, m.end(name)...)
	}
	return ended
}

// answered takes a slot off all moves, and returns when those moves began that are complete now.
func (m moves) answered(slot propagate.Slot) (ended []time.Time) {
	for name, way := range m {
		if way.left[slot] {
			delete(way.left, slot)
			ended = append(ended, m.end(name)...)
		}
	}
	return ended
}

// end forgets the move of the namespace called name and returns when the move began, if nothing of the move is left; otherwise it returns
// nil.
func (m moves) end(name string) []time.Time {
	way := m[name]
	if len(way.next) > 0 || len(way.left) > 0 {
		return nil
	}
	delete(m, name)
	return []time.Time{way.since}
}

// recordMoves adds complete moves, given by when each began, to the metric.
func recordMoves(began []time.Time) {
	for _, since := range began {
		settleSeconds.Observe(time.Since(since).Seconds())
	}
}
