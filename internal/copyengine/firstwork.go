package copyengine

// firstWork holds the keys that were queued when this replica began to lead, or when a kind became active. The keys
// that follow from these belong to it, too. Each stays until it is done. Later keys do not matter: work without an end
// in one tenant must not hide what is known of all others.
type firstWork struct {
	open map[Key]bool
	done bool // from then on nothing is first work
	// slots and sources count the keys by namespace. What a look at a source finds out concerns the namespaces below
	// it, too.
	slots, sources map[string]int
}

func newFirstWork() *firstWork {
	return &firstWork{open: map[Key]bool{}, slots: map[string]int{}, sources: map[string]int{}}
}

// countsOf returns the counts in which keys of a task are.
func (w *firstWork) countsOf(task Task) map[string]int {
	if task == WriteSlot || task == LookAtNamespace {
		return w.slots
	}
	return w.sources
}

// endWork records that the first work is done.
func (w *firstWork) endWork() { *w = firstWork{done: true} }

func (w *firstWork) isEmpty() bool { return len(w.open) == 0 }

// addKeys adds keys, unless the first work is done.
func (w *firstWork) addKeys(keys ...Key) {
	if w.done {
		return
	}
	for _, key := range keys {
		if !w.open[key] {
			w.open[key] = true
			w.countsOf(key.Task)[key.Slot.Namespace]++
		}
	}
}

// removeKey removes a key, and reports whether it was the last one of its namespace and of its counts.
func (w *firstWork) removeKey(key Key) (last bool) {
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
