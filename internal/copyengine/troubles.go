package copyengine

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// slotTrouble is what keeps a slot from being what it should be.
type slotTrouble struct {
	reason    v1alpha1.Reason // Conflict, Rejected, or "" for a failure that passes by itself
	from      string          // the namespace of the source
	text      string          // what is in the way, for conditions and Events
	tries     int
	announced bool // an Event was sent on the source
	silent    bool // the source is in mode create: another object satisfies it
	seen      bool // a watch shows the other object of a conflict, so the plan takes it into account
	reading   bool // the slot is that of a source that could not be read: nothing is known of its copies either
}

// isRetried reports whether the slot is tried again for a reason that passes by itself. A slot with a text does not count: an object may be
// being deleted for ever.
func (t slotTrouble) isRetried() bool { return t.reason == "" && t.text == "" }

// isConflict reports whether another object is at the slot.
func (t slotTrouble) isConflict() bool { return t.reason == v1alpha1.ReasonConflict }

// troubles are the slots and sources in trouble.
type troubles struct {
	slots map[string]map[copies.Slot]*slotTrouble // by namespace
	// invalid are the sources that cannot be judged, by namespace, and why. A copy of another source may be in trouble at the same slot.
	invalid map[string]map[copies.Slot]string
	// first is what must be done before everything is known. begun reports that all objects that must be worked on are known, complete that
	// first is done. unknown has the slots whose first try has failed for a reason that passes by itself, but has not passed yet; the value is
	// true for sources that could not be read.
	first           firstWork
	begun, complete bool
	unknown         map[copies.Slot]bool
}

func newTroubles() troubles {
	return troubles{slots: map[string]map[copies.Slot]*slotTrouble{}, invalid: map[string]map[copies.Slot]string{}, first: newFirstWork(),
		unknown: map[copies.Slot]bool{}}
}

// troubleOf returns the trouble of a slot; the zero value if it has none.
func (s *State) troubleOf(slot copies.Slot) slotTrouble {
	if known := s.troubles.slots[slot.Namespace][slot]; known != nil {
		return *known
	}
	return slotTrouble{}
}

// recordTrouble counts one more failed try of a slot.
func (s *State) recordTrouble(slot copies.Slot, now slotTrouble) *slotTrouble {
	t := &s.troubles
	known := t.slots[slot.Namespace][slot]
	switch {
	case known != nil && known.reason != "" && now.reason == "": // a failure that passes by itself does not replace a trouble with a reason
	case known == nil || known.reason != now.reason:
		if known != nil {
			s.reportNamespaces(known.from)
		}
		known = &now
		if t.slots[slot.Namespace] == nil {
			t.slots[slot.Namespace] = map[copies.Slot]*slotTrouble{}
		}
		t.slots[slot.Namespace][slot] = known
		s.reportNamespaces(slot.Namespace, now.from)
	case known.text != now.text || known.from != now.from || known.silent != now.silent:
		s.reportNamespaces(slot.Namespace, known.from, now.from)
		known.text, known.from, known.silent = now.text, now.from, now.silent
	}
	if now.reason != "" {
		s.recordKnown(slot)
	}
	known.tries++
	return known
}

// recordInvalid keeps why the source at slot cannot be judged, if it cannot; source is nil if there is none.
func (s *State) recordInvalid(slot copies.Slot, source *copies.Source) {
	why := ""
	if source != nil {
		why = source.Invalid
	}
	here := s.troubles.invalid[slot.Namespace]
	switch {
	case here[slot] == why:
		return
	case why == "":
		if delete(here, slot); len(here) == 0 {
			delete(s.troubles.invalid, slot.Namespace)
		}
	case here == nil:
		s.troubles.invalid[slot.Namespace] = map[copies.Slot]string{slot: why}
	default:
		here[slot] = why
	}
	s.reportNamespaces(slot.Namespace)
}

// clearTransient forgets the trouble at slot if it is a failure that passes by itself, such as that of a read of a source. A trouble with a
// reason, such as a conflict, stays.
func (s *State) clearTransient(slot copies.Slot) {
	if known := s.troubles.slots[slot.Namespace][slot]; known != nil && known.reason == "" {
		s.forgetTrouble(slot)
	}
}

// clearTrouble forgets the trouble of a slot that is in order again. If a conflict there was announced, and action has ended it,
// clearTrouble announces that, too.
func (s *State) clearTrouble(slot copies.Slot, action copies.Action) {
	was := s.endTrouble(slot)
	if source := s.world.Sources.At(action.Source); source != nil && was.isConflict() && was.announced && action.Verb != copies.Nothing {
		s.announceSource(action.Source, source.UID, false, v1alpha1.ReasonConflictResolved,
			fmt.Sprintf("%s %q was copied to %s", slot.Kind.Kind, slot.Name, slot.Namespace))
	}
}

// endTrouble forgets the trouble of a slot, reports what that changes, and returns the trouble; the zero value if the slot had none.
func (s *State) endTrouble(slot copies.Slot) slotTrouble {
	was, had := s.troubles.slots[slot.Namespace][slot]
	if !had {
		return slotTrouble{}
	}
	s.forgetTrouble(slot)
	s.reportNamespaces(slot.Namespace, was.from)
	return *was
}

func (s *State) forgetTrouble(slot copies.Slot) {
	s.recordKnown(slot)
	if delete(s.troubles.slots[slot.Namespace], slot); len(s.troubles.slots[slot.Namespace]) == 0 {
		delete(s.troubles.slots, slot.Namespace)
	}
}

// forgetTroubles forgets the troubles of namespaces that are gone, and reports the namespaces above each namespace with troubles, both
// those before the change of the forest and those after it.
func (s *State) forgetTroubles(c ForestChanged) {
	t := &s.troubles
	for _, namespace := range c.Namespaces {
		isGone := c.New.Namespace(namespace) == nil
		if isGone {
			delete(t.invalid, namespace)
		}
		if t.slots[namespace] == nil {
			continue
		}
		if isGone {
			for slot, known := range t.slots[namespace] {
				s.recordKnown(slot)
				s.reportNamespaces(known.from)
			}
			delete(t.slots, namespace)
		}
		s.reportAbove(c.Old, namespace)
		s.reportAbove(c.New, namespace)
	}
}

// mostUnknown bounds troubles.unknown. Where more slots than that are tried again, the API server is taken to be down, and nothing is known
// of any slot.
const mostUnknown = 1000

func (t Ticked) applyTo(s *State) {
	if (t.Idle || t.Synced) && !s.troubles.complete && s.CheckSynced() == nil {
		s.completeTroubles(t.Idle)
	}
	s.reportStuck()
}

// completeTroubles records that the first work is known, or that it is done, if all keys are done or idle is true. It reports what may have
// something to report. Slots that are tried again for a reason that passes by itself become unknown: one slot that is never answered must
// not hide what is known of all others.
func (s *State) completeTroubles(idle bool) {
	t := &s.troubles
	isDone := idle || len(t.first.open) == 0
	if unknown := s.findRetried(); isDone && len(unknown) <= mostUnknown {
		t.complete, t.unknown, t.first = true, unknown, newFirstWork()
	} else if t.begun || isDone {
		return
	}
	t.begun = true
	s.reportAll()
}

// reportAll reports namespaces with troubles, with invalid sources or with sources that limits hold back, those that wait for removals, and
// those that may report a trouble from before the start.
func (s *State) reportAll() {
	s.reportNamespaces(slices.Collect(maps.Keys(s.troubles.slots))...)
	s.reportNamespaces(slices.Collect(maps.Keys(s.troubles.invalid))...)
	s.reportNamespaces(slices.Collect(maps.Keys(s.removals.barriers))...)
	for _, root := range s.world.Limits.RootsHeldBack() {
		for _, held := range s.world.Limits.HeldAround(root) {
			s.reportNamespaces(held.Slot.Namespace)
		}
	}
	s.reportEverywhere()
}

// findRetried returns the slots that are tried again for a reason that passes by itself; the value is true for sources that could not be
// read.
func (s *State) findRetried() map[copies.Slot]bool {
	all := map[copies.Slot]bool{}
	for _, here := range s.troubles.slots {
		for slot, known := range here {
			if known.isRetried() {
				all[slot] = known.reading
			}
		}
	}
	return all
}

// recordKnown takes a slot off troubles.unknown, and reports the namespaces that could not be reported because of this slot.
func (s *State) recordKnown(slot copies.Slot) {
	reading, was := s.troubles.unknown[slot]
	if !was {
		return
	}
	if delete(s.troubles.unknown, slot); len(s.troubles.unknown) == mostUnknown {
		s.reportAll() // until now, nothing was known of any slot
	}
	s.reportNamespaces(slot.Namespace)
	if reading {
		for below := range s.world.Forest.Below(slot.Namespace) {
			s.reportOne(below)
		}
	}
}

// IsKnown reports whether everything that a report on a namespace depends on was looked at since this replica leads: what is in it and
// below it, and the sources above it. Before that, what is not in Troubles may be in trouble all the same.
func (s *State) IsKnown(namespace string) bool {
	t, f := &s.troubles, s.world.Forest
	if !t.begun || len(t.unknown) > mostUnknown || !t.complete && s.awaitsFirst(namespace) {
		return false
	}
	above, _ := f.Sources(namespace)
	for slot, reading := range t.unknown {
		if slot.Namespace == namespace || slices.Contains(f.Place(slot.Namespace).Path, namespace) ||
			reading && slices.Contains(above.Names, slot.Namespace) {
			return false
		}
	}
	return true
}

// reportNamespaces reports that these namespaces, and those above them, have something new to report.
func (s *State) reportNamespaces(namespaces ...string) {
	for _, name := range namespaces {
		if name != "" {
			s.reportAbove(s.world.Forest, name)
		}
	}
}

// reportAbove reports a namespace, and those above it in the forest f.
func (s *State) reportAbove(f *forest.Snapshot, namespace string) {
	s.reportOne(namespace)
	for _, above := range f.Place(namespace).Path {
		s.reportOne(above)
	}
}

// reportOne reports one namespace. Before all objects that must be worked on are known, there is nothing to report.
func (s *State) reportOne(namespace string) {
	if !s.troubles.begun {
		return
	}
	if s.out.reports == nil {
		s.out.reports = map[string]bool{}
	}
	s.out.reports[namespace] = true
}

// reportEverywhere reports every namespace with a HierarchyConfiguration.
func (s *State) reportEverywhere() {
	f := s.world.Forest
	for name := range f.All() {
		if f.Hierarchy(name) != nil {
			s.reportOne(name)
		}
	}
}

// reportVisibility reports the namespaces whose copies depend on what the operator sees in namespace, or Everywhere.
func (s *State) reportVisibility(namespace string) {
	if namespace == copies.Everywhere {
		s.reportEverywhere()
		return
	}
	s.reportNamespaces(namespace)
	for below := range s.world.Forest.Below(namespace) {
		s.reportOne(below)
	}
}

// Troubles returns what keeps copies in these namespaces from being what they should be, in alphabetical order. Copies that must be removed
// before others are written are among the troubles once no copy was removed in their namespace for Timing.Stuck.
func (s *State) Troubles(namespaces iter.Seq[string]) []copies.Trouble {
	var all []copies.Trouble
	for namespace := range namespaces {
		all = append(all, s.world.Limits.HeldAround(namespace)...)
		for slot, why := range s.troubles.invalid[namespace] {
			all = append(all, copies.Trouble{Slot: slot, Reason: v1alpha1.ReasonInvalidSource, From: namespace, Text: why})
		}
		leaving := map[copies.Slot]*copies.Copy{}
		if barrier := s.removals.barriers[namespace]; barrier != nil && barrier.reported {
			leaving = s.findLeaving(namespace)
		}
		for slot, c := range leaving {
			all = append(all, copies.Trouble{Slot: slot, Reason: v1alpha1.ReasonWaitingForRemoval, From: c.From,
				Text: describeRemoval(c, s.troubleOf(slot))})
		}
		for slot, t := range s.troubles.slots[namespace] {
			if t.reason != "" && !t.silent && leaving[slot] == nil {
				all = append(all, copies.Trouble{Slot: slot, Reason: t.reason, From: t.from, Text: t.text})
			}
		}
	}
	slices.SortFunc(all, copies.Trouble.Compare)
	return all
}

// describeRemoval returns why a copy that others wait for still exists.
func describeRemoval(c *copies.Copy, t slotTrouble) string {
	switch {
	case t.reason == v1alpha1.ReasonRejected && !c.Terminating:
		return "the operator deletes it before it writes copies of other sources, but the API server refuses to delete it: " + t.text
	case c.Kept != nil && len(c.Kept.Finalizers) > 0:
		return fmt.Sprintf("the operator deletes it before it writes copies of other sources, but a finalizer keeps it: %s",
			strings.Join(c.Kept.Finalizers, ", "))
	}
	return "the operator deletes it before it writes copies of other sources"
}
