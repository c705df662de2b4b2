package copyengine

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
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

// isRetried reports whether the slot is tried again for a reason that passes by itself. A slot with a text does not
// count: an object may be being deleted for ever.
func (t slotTrouble) isRetried() bool { return t.reason == "" && t.text == "" }

// isConflict reports whether another object is at the slot.
func (t slotTrouble) isConflict() bool { return t.reason == v1alpha1.ReasonConflict }

// recordSeen records whether a watch shows the other object.
func (t *slotTrouble) recordSeen(seen bool) { t.seen = seen }

// announceOnce reports whether no Event was sent yet about a trouble, and records that one is sent now.
func (t *slotTrouble) announceOnce() bool {
	first := !t.announced
	t.announced = true
	return first
}

// troubles are the slots and sources in trouble.
type troubles struct {
	*core
	events   *events
	first    *firstWork
	removals *removals
	slots    map[string]map[copies.Slot]*slotTrouble // by namespace
	// invalid are the sources that cannot be judged, by namespace, and why. A copy of another source may be in trouble
	// at the same slot.
	invalid map[string]map[copies.Slot]string
	// unknown has the slots whose first try has failed for a reason that passes by itself, but has not passed yet; the
	// value is true for sources that could not be read.
	unknown map[copies.Slot]bool
}

// troubleAt returns the trouble of a slot; the zero value if it has none.
func (t *troubles) troubleAt(slot copies.Slot) slotTrouble {
	if known := t.slots[slot.Namespace][slot]; known != nil {
		return *known
	}
	return slotTrouble{}
}

// slotsIn returns the slots in namespace that have a trouble.
func (t *troubles) slotsIn(namespace string) []copies.Slot {
	return slices.Collect(maps.Keys(t.slots[namespace]))
}

// recordTry counts one more failed try of a slot.
func (t *troubles) recordTry(slot copies.Slot, now slotTrouble) *slotTrouble {
	known := t.slots[slot.Namespace][slot]
	switch {
	case known != nil && known.reason != "" && now.reason == "": // a failure that passes by itself does not replace a trouble with a reason
	case known == nil || known.reason != now.reason:
		if known != nil {
			t.reportNamespaces(known.from)
		}
		known = &now
		if t.slots[slot.Namespace] == nil {
			t.slots[slot.Namespace] = map[copies.Slot]*slotTrouble{}
		}
		t.slots[slot.Namespace][slot] = known
		t.reportNamespaces(slot.Namespace, now.from)
	case known.text != now.text || known.from != now.from || known.silent != now.silent:
		t.reportNamespaces(slot.Namespace, known.from, now.from)
		known.text, known.from, known.silent = now.text, now.from, now.silent
	}
	if now.reason != "" {
		t.recordKnown(slot)
	}
	known.tries++
	return known
}

// recordInvalid keeps why the source at slot cannot be judged, if it cannot; source is nil if there is none.
func (t *troubles) recordInvalid(slot copies.Slot, source *copies.Source) {
	why := ""
	if source != nil {
		why = source.Invalid
	}
	here := t.invalid[slot.Namespace]
	switch {
	case here[slot] == why:
		return
	case why == "":
		if delete(here, slot); len(here) == 0 {
			delete(t.invalid, slot.Namespace)
		}
	case here == nil:
		t.invalid[slot.Namespace] = map[copies.Slot]string{slot: why}
	default:
		here[slot] = why
	}
	t.reportNamespaces(slot.Namespace)
}

// clearTransient drops the trouble at slot if it is a failure that passes by itself, such as that of a read of a
// source. A trouble with a reason, such as a conflict, stays.
func (t *troubles) clearTransient(slot copies.Slot) {
	if known := t.slots[slot.Namespace][slot]; known != nil && known.reason == "" {
		t.dropTrouble(slot)
	}
}

// clearTrouble drops the trouble of a slot that is in order again. If a conflict there was announced, and action has
// ended it, clearTrouble announces that, too.
func (t *troubles) clearTrouble(slot copies.Slot, action copies.Action) {
	was := t.endTrouble(slot)
	if source := t.world.Sources.At(action.Source); source != nil && was.isConflict() && was.announced && action.Verb != copies.Nothing {
		t.events.announceSource(action.Source, source.UID, false, v1alpha1.ReasonConflictResolved,
			fmt.Sprintf("%s %q was copied to %s", slot.Kind.Kind, slot.Name, slot.Namespace))
	}
}

// endTrouble drops the trouble of a slot, reports what that changes, and returns the trouble; the zero value if the
// slot had none.
func (t *troubles) endTrouble(slot copies.Slot) slotTrouble {
	was, had := t.slots[slot.Namespace][slot]
	if !had {
		return slotTrouble{}
	}
	t.dropTrouble(slot)
	t.reportNamespaces(slot.Namespace, was.from)
	return *was
}

func (t *troubles) dropTrouble(slot copies.Slot) {
	t.recordKnown(slot)
	if delete(t.slots[slot.Namespace], slot); len(t.slots[slot.Namespace]) == 0 {
		delete(t.slots, slot.Namespace)
	}
}

// dropNamespaces drops the troubles of namespaces that are gone, and reports the namespaces above each namespace with
// troubles, both those before the change of the forest and those after it.
func (t *troubles) dropNamespaces(c ForestChanged) {
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
				t.recordKnown(slot)
				t.reportNamespaces(known.from)
			}
			delete(t.slots, namespace)
		}
		t.reportAbove(c.Old, namespace)
		t.reportAbove(c.New, namespace)
	}
}

// mostUnknown bounds troubles.unknown. Where more slots than that are tried again, the API server is taken to be down,
// and nothing is known of any slot.
const mostUnknown = 1000

// completeFirst records that the first work is known, or that it is done, if all keys are done or idle is true. It
// reports what may have something to report. Slots that are tried again for a reason that passes by itself become
// unknown: one slot that is never answered must not hide what is known of all others.
func (t *troubles) completeFirst(idle bool) {
	isDone := idle || t.first.isEmpty()
	if unknown := t.findRetried(); isDone && len(unknown) <= mostUnknown {
		t.unknown = unknown
		t.first.endWork()
	} else if t.reporting || isDone {
		return
	}
	t.beginReporting()
	t.reportAll()
}

// reportAll reports namespaces with troubles, with invalid sources or with sources that limits hold back, those that
// wait for removals, and those that may report a trouble from before the start.
func (t *troubles) reportAll() {
	t.reportNamespaces(slices.Collect(maps.Keys(t.slots))...)
	t.reportNamespaces(slices.Collect(maps.Keys(t.invalid))...)
	t.reportNamespaces(t.removals.findWaiting()...)
	for _, root := range t.world.Limits.RootsHeldBack() {
		for _, held := range t.world.Limits.HeldAround(root) {
			t.reportNamespaces(held.Slot.Namespace)
		}
	}
	t.reportEverywhere()
}

// findRetried returns the slots that are tried again for a reason that passes by itself; the value is true for sources
// that could not be read.
func (t *troubles) findRetried() map[copies.Slot]bool {
	all := map[copies.Slot]bool{}
	for _, here := range t.slots {
		for slot, known := range here {
			if known.isRetried() {
				all[slot] = known.reading
			}
		}
	}
	return all
}

// recordKnown takes a slot off troubles.unknown, and reports the namespaces that could not be reported because of this
// slot.
func (t *troubles) recordKnown(slot copies.Slot) {
	reading, was := t.unknown[slot]
	if !was {
		return
	}
	if delete(t.unknown, slot); len(t.unknown) == mostUnknown {
		t.reportAll() // until now, nothing was known of any slot
	}
	t.reportNamespaces(slot.Namespace)
	if reading {
		for below := range t.world.Forest.Below(slot.Namespace) {
			t.reportOne(below)
		}
	}
}

func (t *troubles) isKnown(namespace string) bool {
	f := t.world.Forest
	if !t.reporting || len(t.unknown) > mostUnknown || t.waitsForFirst(namespace) {
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

func (t *troubles) troublesIn(namespaces iter.Seq[string]) []copies.Trouble {
	var all []copies.Trouble
	for namespace := range namespaces {
		all = append(all, t.world.Limits.HeldAround(namespace)...)
		for slot, why := range t.invalid[namespace] {
			all = append(all, copies.Trouble{Slot: slot, Reason: v1alpha1.ReasonInvalidSource, From: namespace, Text: why})
		}
		leaving := map[copies.Slot]*copies.Copy{}
		if t.removals.isStuck(namespace) {
			leaving = t.removals.findLeaving(namespace)
		}
		for slot, c := range leaving {
			all = append(all, copies.Trouble{Slot: slot, Reason: v1alpha1.ReasonWaitingForRemoval, From: c.From,
				Text: describeRemoval(c, t.troubleAt(slot))})
		}
		for slot, one := range t.slots[namespace] {
			// A failure without a reason passes by itself, and a copy that is to go is reported above.
			if one.reason != "" && !one.silent && leaving[slot] == nil {
				all = append(all, copies.Trouble{Slot: slot, Reason: one.reason, From: one.from, Text: one.text})
			}
		}
	}
	slices.SortFunc(all, copies.Trouble.Compare)
	return all
}

// countByKind counts the troubles that are reported.
func (t *troubles) countByKind() map[schema.GroupKind]map[v1alpha1.Reason]int {
	counts := map[schema.GroupKind]map[v1alpha1.Reason]int{}
	for _, here := range t.slots {
		for slot, known := range here {
			if known.silent {
				continue
			}
			if counts[slot.Kind] == nil {
				counts[slot.Kind] = map[v1alpha1.Reason]int{}
			}
			counts[slot.Kind][known.reason]++
		}
	}
	return counts
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

// followFirst is called after each Input. If a key of the first work has led to the Input, the keys that follow belong
// to the first work, too. That key is done unless a request was made for it.
func (t *troubles) followFirst(input Input) {
	w := t.first
	if w.isEmpty() {
		return
	}
	held := slices.DeleteFunc(heldKeys(input), func(key Key) bool { return !w.open[key] })
	if len(held) == 0 {
		return
	}
	w.addKeys(t.out.keys...)
	if t.out.hasRequest() {
		return
	}
	for _, key := range held {
		if !t.out.queued[key] {
			t.endFirst(key)
		}
	}
}

// endFirst removes a key from the first work. If its try has failed for a reason that passes by itself, its slot
// becomes unknown. If it was the last key of its namespace, the namespaces that may be known now are reported.
func (t *troubles) endFirst(key Key) {
	slot := key.Slot
	if known := t.slots[slot.Namespace][slot]; known != nil && known.isRetried() {
		t.unknown[slot] = known.reading
	}
	if !t.first.removeKey(key) {
		return
	}
	t.reportKnown(slot.Namespace)
	for _, above := range t.world.Forest.Place(slot.Namespace).Path {
		t.reportKnown(above)
	}
	if key.Task == WriteSlot || key.Task == LookAtNamespace {
		return
	}
	for below := range t.world.Forest.Below(slot.Namespace) {
		t.reportKnown(below)
	}
}

// reportKnown reports a namespace that may be known now, if there may be something to report on it.
func (t *troubles) reportKnown(namespace string) {
	if t.world.Forest.Hierarchy(namespace) != nil || len(t.slots[namespace])+len(t.invalid[namespace]) > 0 ||
		t.removals.isWaiting(namespace) || t.world.Limits.HoldsBack(namespace) {
		t.reportOne(namespace)
	}
}

// waitsForFirst reports whether first work on which a report on namespace depends is not done: in it, below it, or on a
// source above it.
func (t *troubles) waitsForFirst(namespace string) bool {
	w, f := t.first, t.world.Forest
	if w.isEmpty() {
		return false
	}
	above, _ := f.Sources(namespace)
	return slices.ContainsFunc(above.Names, func(name string) bool { return w.sources[name] > 0 }) ||
		slices.ContainsFunc(append(f.Subtree(namespace), namespace), func(name string) bool { return w.slots[name]+w.sources[name] > 0 })
}
