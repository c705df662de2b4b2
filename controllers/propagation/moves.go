package propagation

import (
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// moves measure how long namespaces with another parent take until all copies below them are what they should be. Not safe
// for concurrent use.
type moves map[string]*move // by the namespace that moved

// move is the way of one namespace and of all below it.
type move struct {
	since time.Time
	next  map[string]bool         // namespaces that nobody has looked at since
	left  map[propagate.Slot]bool // what is still to be written
}

// begin notes a change of the forest: a newer move of a namespace takes the place of one that is still under way.
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

// looked notes what is to be written in a namespace, of slots, and returns the moves that this ends.
func (m moves) looked(namespace string, slots []propagate.Slot, plan func(propagate.Slot) propagate.Action) (ended []time.Time) {
	for name, way := range m {
		if !way.next[namespace] {
			continue
		}
		delete(way.next, namespace)
		for _, slot := range slots {
			action := plan(slot)
			if _, writes := verbs[action.Verb]; writes || action.Reason == v1alpha1.ReasonWaitingForRemoval {
				way.left[slot] = true
			}
		}
		ended = append(ended, m.end(name)...)
	}
	return ended
}

// answered takes a slot off all moves, and returns those that this ends.
func (m moves) answered(slot propagate.Slot) (ended []time.Time) {
	for name, way := range m {
		if way.left[slot] {
			delete(way.left, slot)
			ended = append(ended, m.end(name)...)
		}
	}
	return ended
}

// end forgets a move of which nothing is left, and says when it began.
func (m moves) end(name string) []time.Time {
	way := m[name]
	if len(way.next) > 0 || len(way.left) > 0 {
		return nil
	}
	delete(m, name)
	return []time.Time{way.since}
}

// observeMoves reports moves that have come to their end.
func observeMoves(began []time.Time) {
	for _, since := range began {
		settleSeconds.Observe(time.Since(since).Seconds())
	}
}
