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
//	R5 A list ends what it does not have, except what is newer than the list. An answer may be faster than the list.
//	R6 The watch's word about the end of an object counts only for what is not newer. The name may have been given again.
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
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Everywhere is the namespace of a watch of the whole cluster.
const Everywhere = ""

// Place is where an object is. Namespace is "" for an object of the cluster.
type Place = types.NamespacedName

// Table holds the objects of one kind. O is an object as a watch or an answer shows it, V is what is kept of it.
type Table[O metav1.Object, V any] struct {
	door    func(O) V
	records map[string][]*record[V] // by namespace, in the order of names
	sights  map[string]*sight       // by the namespace of the watch
	flights map[*Flight]bool        // the requests under way
}

// record is what is known of one place.
type record[V any] struct {
	name    string
	uid     types.UID
	version string // of the object, or of its end; "" if neither is known
	// there reports that the object exists, and value is what is kept of it.
	there bool
	value V
	// over reports that the UID never exists again, whatever version a watch shows.
	over bool
	// open is what guards a write without an answer, which may be carried out yet; nil if there is none.
	open *guard
}

// guard is the UID and the version that a write asks for; "" and "" for a creation.
type guard struct {
	uid     types.UID
	version string
}

// Change is what was known of a place, and what is. A nil pointer means that there is no object.
type Change[V any] struct {
	Place   Place
	Was, Is *V
}

// New returns an empty Table. door makes what is kept of an object: it copies fields, so that no annotation and no managedFields stay in
// memory, and bounds what may be long.
func New[O metav1.Object, V any](door func(O) V) *Table[O, V] {
	return &Table[O, V]{door: door, records: map[string][]*record[V]{}, sights: map[string]*sight{}, flights: map[*Flight]bool{}}
}

// At returns what is kept of the object at a place; nil if there is none.
func (t *Table[O, V]) At(p Place) *V {
	if r := t.find(p); r != nil && r.there {
		return &r.value
	}
	return nil
}

// Mark returns the UID and the resourceVersion of the object at a place; "" and "" if there is none.
func (t *Table[O, V]) Mark(p Place) (uid types.UID, version string) {
	if r := t.find(p); r != nil && r.there {
		return r.uid, r.version
	}
	return "", ""
}

// In returns the objects of a namespace by name, in the order of names.
func (t *Table[O, V]) In(namespace string) iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for _, r := range t.records[namespace] {
			if r.there && !yield(r.name, &r.value) {
				return
			}
		}
	}
}

// All returns the objects of all namespaces, in no order.
func (t *Table[O, V]) All() iter.Seq2[Place, *V] {
	return func(yield func(Place, *V) bool) {
		for p, r := range t.recordsOf(Everywhere) {
			if r.there && !yield(p, &r.value) {
				return
			}
		}
	}
}

// IsEmpty reports whether nothing exists, as far as is known, and no write is open.
func (t *Table[O, V]) IsEmpty() bool {
	for _, all := range t.records {
		for _, r := range all {
			if r.there || r.open != nil {
				return false
			}
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
		p := placeOf(object)
		listed[p] = object.GetUID()
		if c, changed := t.take(object, isOld); changed {
			changes = append(changes, c)
		}
	}
	for p, r := range t.recordsOf(namespace) {
		uid, stays := listed[p]
		switch {
		case stays && (r.there || r.uid == uid):
		case r.there && forest.IsNewer(r.version, version):
		case !r.there && r.openCreation() != nil:
		default:
			changes = appendEnd(changes, p, r)
			t.drop(p)
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
func (t *Table[O, V]) End(object O) (c Change[V], changed bool) {
	p, version := placeOf(object), object.GetResourceVersion()
	s, r := t.sightOf(p.Namespace), t.find(p)
	defer s.advance(version)
	if r == nil {
		if s.knowledge != Complete {
			t.set(p, record[V]{uid: object.GetUID(), version: version})
		}
		return c, false
	}
	if isOther := r.uid != object.GetUID(); forest.IsNewer(r.version, version) && (r.there || isOther) {
		return c, false // R6
	}
	c, changed = Change[V]{Place: p, Was: r.kept()}, r.there
	is := record[V]{name: r.name, open: r.openCreation()}
	// Without a complete list, the versions of the watch don't show that a late answer is late (R4).
	if s.knowledge != Complete {
		is.uid, is.version = object.GetUID(), version
	}
	if *r = is; is.open == nil && is.version == "" {
		t.drop(p)
	}
	return c, changed
}

// take applies R2, R3 and R4 to an object. isOrdered reports that it came in the order in which things happened, or is an answer, so
// that R4 holds for it.
func (t *Table[O, V]) take(object O, isOrdered bool) (c Change[V], changed bool) {
	p, uid, version := placeOf(object), object.GetUID(), object.GetResourceVersion()
	r, s := t.find(p), t.sightOf(p.Namespace)
	switch {
	case r != nil && r.over && r.uid == uid: // R2
		return c, false
	case r != nil && r.version != "" && !forest.IsNewer(version, r.version): // R3
		return c, false
	case isOrdered && (r == nil || !r.there) && s.isPast(version): // R4
		return c, false
	}
	if c = (Change[V]{Place: p}); r != nil {
		c.Was = r.kept()
	}
	is := record[V]{uid: uid, version: version, there: true, value: t.door(object)}
	if r != nil && r.open != nil && *r.open == (guard{uid, version}) {
		is.open = r.open // the write may still follow (R9)
	}
	t.set(p, is)
	c.Is = is.kept()
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
	for p, r := range t.recordsOf(namespace) {
		r.open = nil
		switch {
		case r.uid == "":
			t.drop(p)
		case r.there && version != "" && !forest.IsNewer(r.version, version):
			*r = record[V]{name: r.name, uid: r.uid, version: r.version, over: true} // until the watch shows its end (R2)
		}
	}
}

// kept returns a copy of what is kept; nil if there is no object.
func (r *record[V]) kept() *V {
	if !r.there {
		return nil
	}
	return new(r.value)
}

// openCreation returns the guard of a creation that may be carried out yet, whatever a watch has shown before (R9).
func (r *record[V]) openCreation() *guard {
	if r.open != nil && r.open.uid == "" {
		return r.open
	}
	return nil
}

func appendEnd[V any](changes []Change[V], p Place, r *record[V]) []Change[V] {
	if !r.there {
		return changes
	}
	return append(changes, Change[V]{Place: p, Was: r.kept()})
}

func placeOf(object metav1.Object) Place {
	return Place{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (t *Table[O, V]) search(p Place) (at int, found bool) {
	return slices.BinarySearchFunc(t.records[p.Namespace], p.Name, func(r *record[V], name string) int { return cmp.Compare(r.name, name) })
}

func (t *Table[O, V]) find(p Place) *record[V] {
	if at, found := t.search(p); found {
		return t.records[p.Namespace][at]
	}
	return nil
}

// set puts a record at a place, in place of what was there.
func (t *Table[O, V]) set(p Place, is record[V]) {
	at, found := t.search(p)
	if is.name = p.Name; found {
		*t.records[p.Namespace][at] = is
	} else {
		t.records[p.Namespace] = slices.Insert(t.records[p.Namespace], at, &is)
	}
}

func (t *Table[O, V]) drop(p Place) {
	at, found := t.search(p)
	if !found {
		return
	}
	if t.records[p.Namespace] = slices.Delete(t.records[p.Namespace], at, at+1); len(t.records[p.Namespace]) == 0 {
		delete(t.records, p.Namespace)
	}
}

// recordsOf returns the records of a namespace, or all. The caller may drop the one that it was given.
func (t *Table[O, V]) recordsOf(namespace string) iter.Seq2[Place, *record[V]] {
	return func(yield func(Place, *record[V]) bool) {
		for in, all := range t.records {
			if namespace != Everywhere && in != namespace {
				continue
			}
			for _, r := range slices.Clone(all) {
				if !yield(Place{Namespace: in, Name: r.name}, r) {
					return
				}
			}
		}
	}
}
