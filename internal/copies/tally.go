package copies

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// tally holds how many copies there are, and how large they are: what exists counts for the limits of a tree. Access copies, and copies that
// are not ours, are not counted.
type tally struct {
	made   map[string]int    // by the namespace of the source
	madeOf map[sourceKey]int // by source
	// written is the size of one existing copy of a source, in bytes, as far as that is known.
	written map[sourceKey]int
}

func newTally() tally {
	return tally{made: map[string]int{}, madeOf: map[sourceKey]int{}, written: map[sourceKey]int{}}
}

// count adds change to the number of copies of a source.
func (t *tally) count(source sourceKey, r *record, change int) {
	if !r.flags.has(ours) || r.flags.has(accessCopy) {
		return
	}
	if t.made[source.namespace] += change; t.made[source.namespace] == 0 {
		delete(t.made, source.namespace)
	}
	if t.madeOf[source] += change; t.madeOf[source] == 0 {
		delete(t.madeOf, source)
		delete(t.written, source)
	}
}

// noteFound takes size, that of a source, for the size of the copies that exist, where that is not known: after a start.
func (t *tally) noteFound(source sourceKey, size int) {
	if t.written[source] == 0 && t.madeOf[source] > 0 {
		t.written[source] = size
	}
}

// noteWritten says that a copy of s was written as s is now. It returns whether the copies of s have another size thereby: in mode create, the
// other copies stay as large as they were.
func (t *tally) noteWritten(source sourceKey, s *Source) (changed bool) {
	size := t.written[source]
	if size == s.Size || s.Mode == v1alpha1.ModeCreate && size > s.Size {
		return false
	}
	t.written[source] = s.Size
	return true
}
