package copies

// tally holds how many copies there are, and how large they are: what exists counts for the limits of a tree. Access
// copies, and copies that are not ours, are not counted.
type tally struct {
	made   map[string]int    // how many copies, by the namespace of the source
	madeOf map[sourceKey]int // how many copies, by source
	// written is the size of the largest existing copy of a source, in bytes, as far as that is known.
	written map[sourceKey]int
	// orphaned holds, by namespace, the sources that are gone but have copies that count. A count of one tree visits
	// all of orphaned, and so must not visit the sources of all other trees.
	orphaned  map[string]map[sourceKey]bool
	hasSource func(sourceKey) bool
}

func newTally(hasSource func(sourceKey) bool) tally {
	return tally{made: map[string]int{}, madeOf: map[sourceKey]int{}, written: map[sourceKey]int{},
		orphaned: map[string]map[sourceKey]bool{}, hasSource: hasSource}
}

// recordOrphaned records whether a source is gone but has copies. It is called when either of the two may have changed.
func (t *tally) recordOrphaned(source sourceKey) {
	here := t.orphaned[source.namespace]
	if t.madeOf[source] > 0 && !t.hasSource(source) {
		if here == nil {
			here = map[sourceKey]bool{}
			t.orphaned[source.namespace] = here
		}
		here[source] = true
		return
	}
	if delete(here, source); len(here) == 0 {
		delete(t.orphaned, source.namespace)
	}
}

// counts reports whether a copy counts for limits.
func (r *record) counts() bool { return r.flags.has(ours) && !r.flags.has(accessCopy) }

// countCopy adds change to the number of copies of a source.
func (t *tally) countCopy(source sourceKey, r *record, change int) {
	if !r.counts() {
		return
	}
	if t.made[source.namespace] += change; t.made[source.namespace] == 0 {
		delete(t.made, source.namespace)
	}
	if t.madeOf[source] += change; t.madeOf[source] == 0 {
		delete(t.madeOf, source)
		delete(t.written, source)
	}
	t.recordOrphaned(source)
}

// recordFoundSize records size, the present size of the source or that of a copy, as the size of its existing copies. It does so only
// while their size is unknown, for example after a start.
func (t *tally) recordFoundSize(source sourceKey, size int) (changed bool) {
	if t.written[source] > 0 || t.madeOf[source] == 0 {
		return false
	}
	t.written[source] = size
	return true
}

// recordWrittenSize records the size of a copy of a source that was written. Older copies may be larger, so the largest
// size counts; see Allotter.settleSize. changed reports that the recorded size differs from the one before.
func (t *tally) recordWrittenSize(source sourceKey, size int) (changed bool) {
	if size <= t.written[source] || t.madeOf[source] == 0 {
		return false
	}
	t.written[source] = size
	return true
}
