package mirror

// Flight is one request about a place, from before it is sent to its answer.
type Flight struct {
	// Mark is that of the object that was known when the request began. A write asks for its UID and version.
	Mark
	place  Place
	isVoid bool
}

// Begin is called before a request is sent. Exactly one of Answered, Absent, Deleted, Refused and Lost ends the Flight.
func (t *Table[O, V]) Begin(p Place) *Flight {
	f := &Flight{place: p, Mark: t.Mark(p)}
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
	t.setOpen(f.place, nil)
	was, known, _ := t.look(f.place)
	if was == nil || known.UID != f.UID {
		return c, false
	}
	return t.drop(f.place, was, trace{Mark: known, over: true}), true
}

// Deleted takes in that a deletion was carried out, which was guarded by the UID and the version known when it began (R8).
func (t *Table[O, V]) Deleted(f *Flight) (c Change[V], changed bool) {
	was, known, _ := t.look(f.place)
	if !t.land(f) || was == nil || known != f.Mark {
		return c, false
	}
	return t.drop(f.place, was, trace{Mark: known}), true
}

// Refused takes in that a request was not carried out, and reports whether that still says something about the place (R1).
func (t *Table[O, V]) Refused(f *Flight) bool { return t.land(f) }

// Lost takes in that a write has no answer, and reports whether it may be carried out yet (R9).
func (t *Table[O, V]) Lost(f *Flight) bool {
	// What is known was not known when the write began: it is newer than the version that guards the write.
	if !t.land(f) || t.Mark(f.place) != f.Mark {
		return false
	}
	t.setOpen(f.place, new(f.Mark))
	return true
}

// IsOpen reports whether a write without an answer may be carried out yet at a place.
func (t *Table[O, V]) IsOpen(p Place) bool {
	left := t.traces[p]
	return left != nil && left.open != nil
}

func (t *Table[O, V]) setOpen(p Place, open *Mark) {
	_, _, left := t.look(p)
	left.open = open
	t.setTrace(p, left)
}
