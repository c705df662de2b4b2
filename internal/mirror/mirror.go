// Package mirror keeps what watches and answers have shown of the objects of one kind. It is the only place that asks "is what is known
// newer than what was just shown?". Whoever uses it keeps what it has decided, and asks the Table what exists.
//
// A Table takes in four things: a complete list, an object that a watch shows, the end of an object, and the answer to a request of the
// operator's own. It returns what has changed, or nothing. These rules decide, in this order:
//
//	R1 An answer says nothing once the namespace of its object is gone, or was made anew, since its request began. A write that was lost
//	   was once repeated in another namespace of the name.
//	R2 An object whose UID is known to be gone stays gone. A watch that is behind showed a deleted object again.
//	R3 Of two things about one place, also about two objects of one name, the one with the higher resourceVersion counts. An answer
//	   about an object that is gone hid the object that came after it.
//	R4 What is not higher than what the watch has shown of all objects, and is about a place where the watch shows none, is of an object that
//	   has gone since. A late answer brought a deleted object back for ever.
//	R5 A list ends what it does not have, except what is newer than the list; an end that is newer stays remembered. An answer may be
//	   faster than the list.
//	R6 The watch's word about the end of an object counts only for that object, and for what is not newer. The name may have been given
//	   again.
//	R7 A read that finds nothing ends the object that was known when it began: UIDs never return. About any other it says nothing.
//	R8 A deletion that was answered ends the version that it was guarded by. Where a finalizer keeps the object, a watch shows a newer one.
//	R9 A write without an answer may be carried out yet. It is open until something newer than the version that guards it is known, or an
//	   answer to a repetition comes. A refusal of a later write does not end it.
//	R10 Absence may be believed once a list was complete. A watch that was never complete, or that is blind, shows the absence of nothing:
//	   shares of a budget were deleted after a start at which the first list failed.
//
// What a Table keeps is bounded by what exists: a value has the fields that the door keeps of an object, and what is remembered of an
// object that is gone ends when the watch is past it. A restart of etcd from a backup, in which versions go back, ends the process (see
// internal/operator, restored.go).
//
// A Table has no lock, no client and no clock. It returns changes by value, in the order of lists.
package mirror

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Everywhere is the namespace of a watch of the whole cluster.
const Everywhere = ""

// Place is where an object is. Namespace is "" for an object of the cluster.
type Place = types.NamespacedName

// Mark tells one version of one object from all others. The zero Mark is of no object.
type Mark struct {
	UID     types.UID
	Version string
}

// MarkOf returns the Mark of an object as it was shown.
func MarkOf(object metav1.Object) Mark { return Mark{object.GetUID(), object.GetResourceVersion()} }

// Table holds the objects of one kind. O is an object as a watch or an answer shows it, V is what is kept of it.
type Table[O metav1.Object, V any] struct {
	door    func(O) V
	store   Store[V]
	traces  map[Place]*trace  // what is remembered of a place beside the object that is there
	sights  map[string]*sight // by the namespace of the watch
	flights map[*Flight]bool  // the requests under way
}

// trace is what is remembered of a place beside the object that is there.
type trace struct {
	// Mark is that of the end of an object; zero if it is not known, or if there is an object.
	Mark
	// over reports that the UID never exists again, whatever version a watch shows.
	over bool
	// open is what guards a write without an answer, which may be carried out yet; nil if there is none. The guard of a creation is zero.
	open *Mark
}

// Change is what was known of a place, and what is. A nil pointer means that there is no object.
type Change[V any] struct {
	Place   Place
	Was, Is *V
}

// New returns an empty Table. door makes what is kept of an object: it copies fields, so that no annotation and no managedFields stay in
// memory, and bounds what may be long.
func New[O metav1.Object, V any](door func(O) V) *Table[O, V] {
	return NewOver(shelf[V]{}, door)
}

// NewOver returns a Table of the objects in a Store, which it alone adds and removes.
func NewOver[O metav1.Object, V any](store Store[V], door func(O) V) *Table[O, V] {
	return &Table[O, V]{door: door, store: store, traces: map[Place]*trace{}, sights: map[string]*sight{}, flights: map[*Flight]bool{}}
}

// At returns what is kept of the object at a place; nil if there is none.
func (t *Table[O, V]) At(p Place) *V {
	is, _ := t.store.At(p)
	return is
}

// Mark returns the Mark of the object at a place.
func (t *Table[O, V]) Mark(p Place) Mark {
	_, known := t.store.At(p)
	return known
}

// In returns the objects of a namespace by name, in the order of names.
func (t *Table[O, V]) In(namespace string) iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for p, is := range t.store.In(namespace) {
			if !yield(p.Name, is) {
				return
			}
		}
	}
}

// All returns the objects of all namespaces, in no order.
func (t *Table[O, V]) All() iter.Seq2[Place, *V] { return t.store.In(Everywhere) }

// IsEmpty reports whether nothing exists, as far as is known, and no write is open.
func (t *Table[O, V]) IsEmpty() bool {
	for range t.All() {
		return false
	}
	for _, left := range t.traces {
		if left.open != nil {
			return false
		}
	}
	return true
}

// List takes in that exactly these objects existed at a version, in a namespace or Everywhere. From then on absence may be believed.
func (t *Table[O, V]) List(namespace, version string, all []O) (changes []Change[V]) {
	s := t.sightAt(namespace)
	changes = t.replace(namespace, version, all)
	s.knowledge, s.reason = Complete, ""
	s.advance(version)
	return changes
}

// Read takes in the answer to a list of the operator's own. It does not make absence believable: no watch follows it.
func (t *Table[O, V]) Read(namespace, version string, all []O) []Change[V] {
	changes := t.replace(namespace, version, all)
	t.sightAt(namespace).advance(version)
	return changes
}

// replace applies a list (R5).
func (t *Table[O, V]) replace(namespace, version string, all []O) (changes []Change[V]) {
	// A list that is older than what the watch has shown may have objects that are gone.
	isOld := forest.IsNewer(t.sightAt(namespace).shown, version)
	listed := make(map[Place]types.UID, len(all))
	for _, object := range all {
		p := PlaceOf(object)
		listed[p] = object.GetUID()
		if c, changed := t.take(object, isOld); changed {
			changes = append(changes, c)
		}
	}
	for p, was := range t.store.In(namespace) {
		if _, stays := listed[p]; !stays && !forest.IsNewer(t.Mark(p).Version, version) {
			changes = append(changes, t.drop(p, was, trace{}))
		}
	}
	for p, left := range t.tracesOf(namespace) {
		uid, stays := listed[p]
		isKept := stays && left.UID == uid || left.Version != "" && forest.IsNewer(left.Version, version)
		if !isKept && t.At(p) == nil {
			t.setTrace(p, trace{open: left.openCreation()})
		}
	}
	return changes
}

// Show takes in an object that a watch shows.
func (t *Table[O, V]) Show(object O) (Change[V], bool) {
	c, changed := t.take(object, true)
	t.sightOf(object.GetNamespace()).advance(object.GetResourceVersion())
	return c, changed
}

// End takes in that a watch shows an object no longer: it was deleted, or left the watch's selectors. The version of object is that of
// its end. Where a watch only knows that the object has gone meanwhile, it is the version up to which the watch has seen.
func (t *Table[O, V]) End(object O) (c Change[V], changed bool) { return t.end(object, true) }

// Hide takes in that a watch shows an object of which nothing is kept: from then on, there is nothing else at its place.
func (t *Table[O, V]) Hide(object O) (c Change[V], changed bool) { return t.end(object, false) }

// end applies R6. isOwn reports that it is the end of this object alone.
func (t *Table[O, V]) end(object O, isOwn bool) (c Change[V], changed bool) {
	p, end := PlaceOf(object), MarkOf(object)
	s := t.sightOf(p.Namespace)
	defer s.advance(end.Version)
	was, known, left := t.look(p)
	isOther, isPast := known.UID != end.UID, forest.IsNewer(known.Version, end.Version)
	if was != nil && (isPast || isOwn && isOther) || was == nil && isPast && isOther {
		return c, false
	}
	is := trace{open: left.openCreation()}
	// Without a complete list, the versions of the watch don't show that a late answer is late (R4).
	if s.knowledge != Complete {
		is.Mark = end
	}
	if was == nil {
		t.setTrace(p, is)
		return c, false
	}
	return t.drop(p, was, is), true
}

// take applies R2, R3 and R4 to an object. isOrdered reports that it came in the order in which things happened, or is an answer, so
// that R4 holds for it.
func (t *Table[O, V]) take(object O, isOrdered bool) (c Change[V], changed bool) {
	p, shown := PlaceOf(object), MarkOf(object)
	was, known, left := t.look(p)
	switch {
	case left.over && left.UID == shown.UID: // R2
		return c, false
	case known.Version != "" && !forest.IsNewer(shown.Version, known.Version): // R3
		return c, false
	case isOrdered && was == nil && t.sightOf(p.Namespace).isPast(shown.Version): // R4
		return c, false
	}
	is := trace{}
	if left.open != nil && *left.open == shown {
		is.open = left.open // the write may still follow (R9)
	}
	t.setTrace(p, is)
	c = Change[V]{Place: p, Was: copied(was), Is: new(t.door(object))}
	t.store.Put(p, shown, *c.Is)
	return c, true
}

// ForgetNamespace takes in that a namespace is gone, or was made anew: answers to requests that are under way say nothing (R1), and
// what was in it up to a version is gone for good. version is that of the namespace's end, or its last one if that isn't known: the
// watch of this kind may have shown already what is in the new namespace. For a kind that another API server than that of namespaces
// serves, it is "".
func (t *Table[O, V]) ForgetNamespace(namespace, version string) {
	for f := range t.flights {
		f.isVoid = f.isVoid || f.place.Namespace == namespace
	}
	if namespace == "" {
		return // the objects of the cluster are in no namespace
	}
	for p, left := range t.tracesOf(namespace) {
		left.open = nil
		t.setTrace(p, *left)
	}
	if version == "" {
		return
	}
	for p, was := range t.store.In(namespace) {
		if known := t.Mark(p); !forest.IsNewer(known.Version, version) {
			t.drop(p, was, trace{Mark: known, over: true}) // until the watch shows its end (R2)
		}
	}
}

// Outdates reports whether what is known of a place is another object than what a read has shown, or a newer version.
func (t *Table[O, V]) Outdates(p Place, read Mark) bool {
	known := t.Mark(p)
	return known.UID != read.UID || forest.IsNewer(known.Version, read.Version)
}

// look returns the object at a place, the Mark of it or of its end, and what else is remembered of the place.
func (t *Table[O, V]) look(p Place) (is *V, known Mark, left trace) {
	if remembered := t.traces[p]; remembered != nil {
		left = *remembered
	}
	if is, known = t.store.At(p); is == nil {
		known = left.Mark
	}
	return is, known, left
}

// drop removes the object at a place, and remembers a trace of it.
func (t *Table[O, V]) drop(p Place, was *V, left trace) Change[V] {
	c := Change[V]{Place: p, Was: copied(was)}
	t.store.Drop(p)
	t.setTrace(p, left)
	return c
}

func (t *Table[O, V]) setTrace(p Place, left trace) {
	if left == (trace{}) {
		delete(t.traces, p)
	} else {
		t.traces[p] = &left
	}
}

// tracesOf returns what is remembered of the places in a namespace, or Everywhere.
func (t *Table[O, V]) tracesOf(namespace string) iter.Seq2[Place, *trace] {
	return func(yield func(Place, *trace) bool) {
		for p, left := range t.traces {
			if (namespace == Everywhere || p.Namespace == namespace) && !yield(p, left) {
				return
			}
		}
	}
}

// openCreation returns the guard of a creation that may be carried out yet, whatever a watch has shown before (R9).
func (left trace) openCreation() *Mark {
	if left.open != nil && left.open.UID == "" {
		return left.open
	}
	return nil
}

// copied returns a copy of what is kept, which the Store may change.
func copied[V any](is *V) *V {
	if is == nil {
		return nil
	}
	return new(*is)
}

// PlaceOf returns where an object is.
func PlaceOf(object metav1.Object) Place {
	return Place{Namespace: object.GetNamespace(), Name: object.GetName()}
}
