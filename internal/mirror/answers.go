package mirror

import (
	"k8s.io/apimachinery/pkg/types"
)

// Flight is one request about a place, from before it is sent to its answer.
type Flight struct {
	// UID and Version are those of the object that was known when the request began; "" if none was. A write asks for both.
	UID     types.UID
	Version string
	place   Place
	isVoid  bool
}

// Begin is called before a request is sent. Exactly one of Answered, Absent, Deleted, Refused and Lost ends the Flight.
func (t *Table[O, V]) Begin(p Place) *Flight {
	f := &Flight{place: p}
	f.UID, f.Version = t.Mark(p)
	t.flights[f] = true
	return f
}

// land ends a Flight, and reports whether its answer counts (R1).
func (t *Table[O, V]) land(f *Flight) bool {
	delete(t.flights, f)
	return !f.isVoid
}

// Answered takes in the object that a write or a read has returned. It decides an open write too, even where a watch was faster or a
// repeated write has changed nothing.
func (t *Table[O, V]) Answered(f *Flight, object O) (c Change[V], changed bool) {
	if !t.land(f) {
		return c, false
	}
	c, changed = t.take(object, true)
	t.setOpen(f.place, nil)
	return c, changed
}

// Absent takes in that a read has found nothing (R7).
func (t *Table[O, V]) Absent(f *Flight) (c Change[V], changed bool) {
	if !t.land(f) {
		return c, false
	}
	r := t.find(f.place)
	t.setOpen(f.place, nil)
	if r == nil || !r.there || r.uid != f.UID {
		return c, false
	}
	c = Change[V]{Place: f.place, Was: r.kept()}
	*r = record[V]{name: r.name, uid: r.uid, version: r.version, over: true}
	return c, true
}

// Deleted takes in that a deletion was carried out, which was guarded by the UID and the version known when it began (R8).
func (t *Table[O, V]) Deleted(f *Flight) (c Change[V], changed bool) {
	r := t.find(f.place)
	if !t.land(f) || r == nil || !r.there || r.uid != f.UID || r.version != f.Version {
		return c, false
	}
	c = Change[V]{Place: f.place, Was: r.kept()}
	*r = record[V]{name: r.name, uid: r.uid, version: r.version}
	return c, true
}

// Refused takes in that a request was not carried out, and reports whether that still says something about the place (R1).
func (t *Table[O, V]) Refused(f *Flight) bool { return t.land(f) }

// Lost takes in that a write has no answer, and reports whether it may be carried out yet (R9).
func (t *Table[O, V]) Lost(f *Flight) bool {
	// What is known was not known when the write began: it is newer than the version that guards the write.
	if uid, version := t.Mark(f.place); !t.land(f) || uid != f.UID || version != f.Version {
		return false
	}
	t.setOpen(f.place, &guard{f.UID, f.Version})
	return true
}

// IsOpen reports whether a write without an answer may be carried out yet at a place.
func (t *Table[O, V]) IsOpen(p Place) bool {
	r := t.find(p)
	return r != nil && r.open != nil
}

func (t *Table[O, V]) setOpen(p Place, open *guard) {
	switch r := t.find(p); {
	case r == nil && open != nil:
		t.set(p, record[V]{open: open})
	case r == nil:
	case open == nil && !r.there && r.version == "":
		t.drop(p) // nothing was known but the open write
	default:
		r.open = open
	}
}
