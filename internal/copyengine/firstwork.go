package copyengine

import (
	"slices"
)

// firstWork holds the keys that were queued when this replica began to lead, or when a kind became active. The keys that follow from these
// belong to it, too. Each stays until it is done. Later keys do not matter: work without an end in one tenant must not hide what is known
// of all others.
type firstWork struct {
	open map[Key]bool
	// slots and sources count the keys by namespace. What a look at a source finds out concerns the namespaces below it, too.
	slots, sources map[string]int
}

func newFirstWork() firstWork {
	return firstWork{open: map[Key]bool{}, slots: map[string]int{}, sources: map[string]int{}}
}

// countsOf returns the counts in which keys of a task are.
func (w *firstWork) countsOf(task Task) map[string]int {
	if task == WriteSlot || task == LookAtNamespace {
		return w.slots
	}
	return w.sources
}

func (w *firstWork) add(keys ...Key) {
	for _, key := range keys {
		if !w.open[key] {
			w.open[key] = true
			w.countsOf(key.Task)[key.Slot.Namespace]++
		}
	}
}

// remove removes a key, and reports whether it was the last one of its namespace and of its counts.
func (w *firstWork) remove(key Key) (last bool) {
	delete(w.open, key)
	counts, namespace := w.countsOf(key.Task), key.Slot.Namespace
	if counts[namespace]--; counts[namespace] > 0 {
		return false
	}
	delete(counts, namespace)
	return true
}

// heldKeys returns the keys of which a worker may have one when it applies this input.
func heldKeys(input Input) []Key {
	switch one := input.(type) {
	case Started:
		return []Key{one.Key}
	case SourceRead:
		return []Key{sourceTask(one.Source), spreadKey(one.Source)}
	case LossFound:
		return []Key{sourceTask(one.Source)}
	case RemovalChecked:
		return []Key{slotKey(one.Slot)}
	case CopyWritten:
		return []Key{slotKey(one.Slot)}
	}
	return nil
}

// followFirst is called after each Input. If a key of the first work has led to the Input, the keys that follow belong to the first work,
// too. That key is done unless a request was made for it.
func (s *State) followFirst(input Input) {
	w := &s.troubles.first
	if len(w.open) == 0 {
		return
	}
	held := slices.DeleteFunc(heldKeys(input), func(key Key) bool { return !w.open[key] })
	if len(held) == 0 {
		return
	}
	w.add(s.out.keys...)
	if s.out.hasRequest() {
		return
	}
	for _, key := range held {
		if !s.out.queued[key] {
			s.endFirst(key)
		}
	}
}

// endFirst removes a key from the first work. If its try has failed for a reason that passes by itself, its slot becomes unknown. If it was
// the last key of its namespace, the namespaces that may be known now are reported.
func (s *State) endFirst(key Key) {
	slot := key.Slot
	if known := s.troubles.slots[slot.Namespace][slot]; known != nil && known.isRetried() {
		s.troubles.unknown[slot] = known.reading
	}
	if !s.troubles.first.remove(key) {
		return
	}
	s.reportKnown(slot.Namespace)
	for _, above := range s.world.Forest.Place(slot.Namespace).Path {
		s.reportKnown(above)
	}
	if key.Task == WriteSlot || key.Task == LookAtNamespace {
		return
	}
	for below := range s.world.Forest.Below(slot.Namespace) {
		s.reportKnown(below)
	}
}

// reportKnown reports a namespace that may be known now, if there may be something to report on it.
func (s *State) reportKnown(namespace string) {
	t := &s.troubles
	if s.world.Forest.Hierarchy(namespace) != nil || len(t.slots[namespace])+len(t.invalid[namespace]) > 0 ||
		s.removals.barriers[namespace] != nil || s.world.Limits.HoldsBack(namespace) {
		s.reportOne(namespace)
	}
}

// awaitsFirst reports whether first work on which a report on namespace depends is not done: in it, below it, or on a source above it.
func (s *State) awaitsFirst(namespace string) bool {
	w, f := &s.troubles.first, s.world.Forest
	if len(w.open) == 0 {
		return false
	}
	above, _ := f.Sources(namespace)
	return slices.ContainsFunc(above.Names, func(name string) bool { return w.sources[name] > 0 }) ||
		slices.ContainsFunc(append(f.Subtree(namespace), namespace), func(name string) bool { return w.slots[name]+w.sources[name] > 0 })
}
