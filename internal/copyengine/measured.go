package copyengine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
)

// measured is what the metrics need about how long changes take. Only the leader measures.
type measured struct {
	*core
	watches *watches
	fanouts fanouts
	moves   moves
}

// beginFanout records when a source has changed, except for the events that only fill the State before the kind is
// active.
func (m *measured) beginFanout(kind schema.GroupKind, source copies.Slot) {
	if m.leading && m.watches.kindOf(kind).state == copies.KindActive {
		m.fanouts.began[source] = m.now
	}
}

// endSlot records that a slot has its answer, whatever it is, and emits the fan-outs and moves that this ends.
func (m *measured) endSlot(slot copies.Slot) {
	for _, ended := range m.fanouts.recordAnswer(slot) {
		m.emitFanout(slot.Kind, ended)
	}
	m.emitMoves(m.moves.recordAnswer(slot))
}

// emitFanout emits a fan-out that is complete, and nothing if ended is nil.
func (m *measured) emitFanout(kind schema.GroupKind, ended *fanout) {
	if ended != nil {
		m.emitOutput(FanoutEnded{Kind: kind, Verb: ended.verb, Since: ended.since})
	}
}

// emitMoves emits complete moves, given by when each began.
func (m *measured) emitMoves(began []time.Time) {
	for _, since := range began {
		m.emitOutput(MoveEnded{Since: since})
	}
}

// beginRecording is called when everything is known of a source that is needed to plan its slots.
func (m *measured) beginRecording(source copies.Slot) { m.fanouts.openFanout(source) }

// recordSlots records which of slots are to be written because of the source's change.
func (m *measured) recordSlots(source copies.Slot, slots []copies.Slot) {
	m.fanouts.recordSlots(source, slots, m.world.Plan)
}

// endRecording is called when all slots of a source are recorded.
func (m *measured) endRecording(source copies.Slot) {
	m.emitFanout(source.Kind, m.fanouts.endRecording(source))
}

// beginMoves starts to measure the namespaces that have got another parent.
func (m *measured) beginMoves(c ForestChanged) {
	if m.leading {
		m.moves.beginMoves(c, m.now)
	}
}

// recordPlanned records which slots of a namespace are to be written because of moves.
func (m *measured) recordPlanned(namespace string, slots []copies.Slot) {
	m.emitMoves(m.moves.recordPlanned(namespace, slots, m.world.Plan))
}

// fanouts measure how long changes of sources take: from the change to the last answer.
type fanouts struct {
	began    map[copies.Slot]time.Time             // by source: when it changed, until its slots are planned
	underWay map[copies.Slot]map[fanoutKey]*fanout // by sameName
}

// sameName is what the slots of one kind and name have in common.
func sameName(slot copies.Slot) copies.Slot { return slot.At("") }

// fanoutKey distinguishes the fan-outs of sources of one kind and name: namespace is that of the source. A fan-out is
// open while slots of the source are still to be planned.
type fanoutKey struct {
	namespace string
	open      bool
}

// fanout is one change of a source, until all writes that follow from it are answered.
type fanout struct {
	since time.Time
	verb  copies.Verb     // Nothing while no write has followed
	left  map[string]bool // namespaces in which something is still to be written
}

func newFanouts() fanouts {
	return fanouts{began: map[copies.Slot]time.Time{}, underWay: map[copies.Slot]map[fanoutKey]*fanout{}}
}

func isWrite(verb copies.Verb) bool {
	return verb == copies.Create || verb == copies.Update || verb == copies.Delete
}

// openFanout begins the fan-out of a source, if the source has changed.
func (f fanouts) openFanout(source copies.Slot) {
	since, changed := f.began[source]
	if !changed {
		return
	}
	delete(f.began, source)
	of := sameName(source)
	if f.underWay[of] == nil {
		f.underWay[of] = map[fanoutKey]*fanout{}
	}
	f.underWay[of][fanoutKey{source.Namespace, true}] = &fanout{since: since, left: map[string]bool{}}
}

// recordSlots records which of slots are to be written because of the source's change. plan describes what a slot needs
// now.
func (f fanouts) recordSlots(source copies.Slot, slots []copies.Slot, plan func(copies.Slot) copies.Action) {
	one := f.underWay[sameName(source)][fanoutKey{source.Namespace, true}]
	if one == nil {
		return
	}
	for _, slot := range slots {
		if verb := plan(slot).Verb; isWrite(verb) {
			one.verb = verb
			one.left[slot.Namespace] = true
		}
	}
}

// endRecording is called when all slots of a source are recorded. It returns the fan-out if that is complete. A newer
// fan-out of a source takes the place of an older one that is not complete.
func (f fanouts) endRecording(source copies.Slot) (ended *fanout) {
	of := sameName(source)
	one := f.underWay[of][fanoutKey{source.Namespace, true}]
	if one == nil {
		return nil
	}
	f.dropFanout(of, fanoutKey{source.Namespace, true})
	switch {
	case len(one.left) > 0:
		if f.underWay[of] == nil {
			f.underWay[of] = map[fanoutKey]*fanout{}
		}
		f.underWay[of][fanoutKey{source.Namespace, false}] = one
	case one.verb != copies.Nothing:
		return one
	}
	return nil
}

// recordAnswer takes a slot off all fan-outs, and returns those that are complete now.
func (f fanouts) recordAnswer(slot copies.Slot) (ended []*fanout) {
	of := sameName(slot)
	for key, one := range f.underWay[of] {
		if delete(one.left, slot.Namespace); len(one.left) == 0 && !key.open {
			ended = append(ended, one)
			f.dropFanout(of, key)
		}
	}
	return ended
}

func (f fanouts) dropFanout(of copies.Slot, key fanoutKey) {
	if delete(f.underWay[of], key); len(f.underWay[of]) == 0 {
		delete(f.underWay, of)
	}
}

// moves measure the time from the move of a namespace to another parent until nothing in or below it is left to try:
// each copy was written, deleted or refused, or a conflict or a limit prevents it. The keys are the namespaces that
// moved.
type moves map[string]*move

// move is the move of one namespace, with all namespaces below it, that is not complete yet.
type move struct {
	since time.Time
	next  map[string]bool      // namespaces whose slots were not planned since the move
	left  map[copies.Slot]bool // slots that are still to be written
}

// beginMoves starts to measure the namespaces that have got another parent in a change of the forest. A newer move of a
// namespace takes the place of an older one that is not complete.
func (m moves) beginMoves(c ForestChanged, now time.Time) {
	for _, name := range c.Namespaces {
		old, n := c.Old.Namespace(name), c.New.Namespace(name)
		switch {
		case n == nil:
			delete(m, name)
		// A namespace that was deleted and created again has not moved.
		case old != nil && old.UID == n.UID && old.Parent() != n.Parent():
			m[name] = &move{since: now, next: map[string]bool{}, left: map[copies.Slot]bool{}}
		}
	}
	if len(m) == 0 {
		return
	}
	for _, namespace := range c.Namespaces {
		for _, above := range append(slices.Clone(c.New.Place(namespace).Path), namespace) {
			if one := m[above]; one != nil {
				one.next[namespace] = true
			}
		}
	}
}

// recordPlanned records which of slots are still to be written in namespace because of moves. For each move that is
// complete now, it returns when the move began.
func (m moves) recordPlanned(namespace string, slots []copies.Slot, plan func(copies.Slot) copies.Action) (ended []time.Time) {
	for name, one := range m {
		if !one.next[namespace] {
			continue
		}
		delete(one.next, namespace)
		for _, slot := range slots {
			if action := plan(slot); isWrite(action.Verb) || action.Verb == copies.Look || waitsForRemoval(action) {
				one.left[slot] = true
			}
		}
		ended = append(ended, m.endMove(name)...)
	}
	return ended
}

// recordAnswer takes a slot off all moves. For each move that is complete now, it returns when the move began.
func (m moves) recordAnswer(slot copies.Slot) (ended []time.Time) {
	for name, one := range m {
		if one.left[slot] {
			delete(one.left, slot)
			ended = append(ended, m.endMove(name)...)
		}
	}
	return ended
}

// endMove ends the move of a namespace if nothing of it is left to plan or to write. Then it forgets the move, and
// returns the time at which the move began. Otherwise it changes nothing and returns nil.
func (m moves) endMove(name string) []time.Time {
	one := m[name]
	if len(one.next) > 0 || len(one.left) > 0 {
		return nil
	}
	delete(m, name)
	return []time.Time{one.since}
}
