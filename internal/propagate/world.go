package propagate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Source is what is known of an object that is propagated.
type Source struct {
	// Maker is what made the object a source.
	Maker                Maker
	UID, ResourceVersion string
	// Mode is create, update or none.
	Mode string
	// Invalid is why the object can't be judged: an unknown mode, or a selector that does not parse. Because of an invalid source, no copy is
	// written or deleted.
	Invalid string
	// Excluded is why the object is never propagated.
	Excluded string
	// Selector selects among the namespaces below; nil selects all.
	Selector labels.Selector
	// Terminating says that the source is being deleted. Until it is gone, no copy is written or deleted because of it.
	Terminating bool
	// Content is the hash of what is written from the source, Meta the digest of the labels and annotations among that. Both are empty until
	// the body of this version has been read.
	Content string
	Meta    uint64
	// Size is what one copy takes, in bytes: 0 until the body was read.
	Size int
	// Created is when the object was made, in Unix seconds.
	Created int64
	// Access says that the object is a RoleBinding that the operator made to hand out the access of a tenant.
	Access bool

	reached   int              // how many namespaces below the selector selects
	reachedIn *forest.Snapshot // the forest for which reached was counted
}

// Copy is what is known of an object with the label inherited-from.
type Copy struct {
	UID, ResourceVersion, From string
	Hash                       Hash
	// Ours says that the place in the hash fits the slot where the copy stands. An object that is not ours is somebody else's object.
	Ours        bool
	Terminating bool
	// Digest covers the metadata as our own last write left it; see Rules.Digest. It is 0 for a copy that this process has not written.
	Digest uint64
	// Meta is the digest of labels and annotations, Foreign says that another manager owns a field that matters: both show drift while Digest
	// is 0. Marked says that the copy has a key of ours that the operator writes on no copy, which is drift for certain.
	Meta    uint64
	Foreign bool
	Marked  bool
	// Access says that the copy is a RoleBinding that hands out the access of a tenant. Rights that its source no longer gives are taken away
	// from such a copy even in a halted namespace.
	Access bool
	// Drifted says that the copy differs from what we wrote there last.
	Drifted bool
	// Kept is what a PUT must carry over; nil for nearly all.
	Kept *Kept
}

// Kept holds what others added to a copy and may keep there.
type Kept struct {
	Finalizers          []string
	OwnerReferences     []metav1.OwnerReference
	Labels, Annotations map[string]string
}

// KindMode is how a kind is propagated.
type KindMode string

// The modes of a kind.
const (
	OptIn  KindMode = "OptIn"
	All    KindMode = "All"
	Remove KindMode = "Remove"
)

type sourceKey struct {
	kind            schema.GroupKind
	namespace, name string
}

type place struct {
	kind schema.GroupKind
	name string
}

type kindState struct {
	mode   KindMode
	synced bool
}

// family are all objects of one kind and name.
type family struct {
	place
	copies int // how many rooms hold one
}

// room holds what stands in one namespace: copies and sources.
type room struct {
	name    string
	copies  map[*family]*record
	sources map[place]bool
	// froms counts our copies in mode update in this namespace, by the namespace of their source: a handful of namespaces at most.
	froms []from
}

type from struct {
	namespace string
	copies    int
}

func (r *room) count(namespace string, change int) {
	for i := range r.froms {
		if r.froms[i].namespace != namespace {
			continue
		}
		if r.froms[i].copies += change; r.froms[i].copies == 0 {
			r.froms = slices.Delete(r.froms, i, i+1)
		}
		return
	}
	r.froms = append(r.froms, from{namespace, change})
}

// World is everything that a plan rests on. It is not safe for concurrent use.
type World struct {
	Forest *forest.Snapshot

	kinds    map[schema.GroupKind]kindState
	sights   map[schema.GroupKind]*sights // of narrow kinds alone; see SetNarrow
	sources  map[sourceKey]*Source
	rooms    map[string]*room
	families map[place]*family
	copiesOf map[sourceKey]map[*room]struct{}
	lost     map[sourceKey]Loss
	// compared holds the access copies in halted or protected namespaces that were compared with their source, with the source's content
	// then.
	compared map[Slot]string
	numbers  map[schema.GroupKind]numbers

	// made and madeOf count the copies of ours, but those that hand out access, by the namespace of their source and by source.
	made   map[string]int
	madeOf map[sourceKey]int
	// written is the size of one existing copy of a source, in bytes, as far as that is known.
	written map[sourceKey]int
	// allotments are by root, and hold for the forest allottedIn.
	allotments map[string]*allotment
	allottedIn *forest.Snapshot
	// heldIn holds, by root, the sources that limits hold back, as NoteHeld was told; true for those that Reallot has returned as held.
	heldIn map[string]map[sourceKey]bool
}

// numbers are how many sources, and copies of ours, there are of a kind.
type numbers struct{ sources, copies int }

// Loss is what a live look at a missing source has shown.
type Loss int

// What may be known of a missing source. Only for a Confirmed loss are the source's copies deleted. In a halted or protected namespace,
// access copies are deleted also for GoneWithNamespace.
const (
	Unverified Loss = iota
	Confirmed
	Doubtful
	GoneWithNamespace
)

// NewWorld returns a world without objects.
func NewWorld(f *forest.Snapshot) *World {
	return &World{
		Forest:   f,
		kinds:    map[schema.GroupKind]kindState{},
		sights:   map[schema.GroupKind]*sights{},
		sources:  map[sourceKey]*Source{},
		rooms:    map[string]*room{},
		families: map[place]*family{},
		copiesOf: map[sourceKey]map[*room]struct{}{},
		lost:     map[sourceKey]Loss{},
		compared: map[Slot]string{},
		numbers:  map[schema.GroupKind]numbers{},
		made:     map[string]int{}, madeOf: map[sourceKey]int{}, written: map[sourceKey]int{},
		allotments: map[string]*allotment{}, heldIn: map[string]map[sourceKey]bool{},
	}
}

func (s Slot) source() sourceKey { return sourceKey{s.Kind, s.Namespace, s.Name} }
func (s Slot) place() place      { return place{s.Kind, s.Name} }

// SetKind says how a kind is propagated, and whether all its sources and copies are known. Nothing is planned for a kind that is not synced,
// because an object that is missing then may exist all the same.
func (w *World) SetKind(kind schema.GroupKind, mode KindMode, synced bool) {
	w.kinds[kind] = kindState{mode, synced}
	clear(w.allotments)
}

// Synced says whether plans are made for a kind.
func (w *World) Synced(kind schema.GroupKind) bool { return w.kinds[kind].synced }

// ForgetKind drops a kind and all that is known of it.
func (w *World) ForgetKind(kind schema.GroupKind) {
	delete(w.kinds, kind)
	delete(w.sights, kind)
	for key := range w.sources {
		if key.kind == kind {
			w.DeleteSource(Slot{kind, key.namespace, key.name})
		}
	}
	_, copies := w.Kind(kind)
	for _, slot := range copies {
		w.DeleteCopy(slot)
	}
}

// Source returns the source that stands at slot, or nil.
func (w *World) Source(slot Slot) *Source { return w.sources[slot.source()] }

// PutSource adds or replaces the source at slot.
func (w *World) PutSource(slot Slot, s *Source) {
	if w.Source(slot) == nil {
		w.number(slot.Kind, 1, 0)
	}
	w.recount(slot.Namespace)
	w.sources[slot.source()] = s
	w.room(slot.Namespace).sources[slot.place()] = true
	delete(w.lost, slot.source())
}

// DeleteSource forgets the source at slot. Its copies stay until its loss is confirmed.
func (w *World) DeleteSource(slot Slot) {
	if w.Source(slot) == nil {
		return
	}
	w.number(slot.Kind, -1, 0)
	w.recount(slot.Namespace)
	delete(w.sources, slot.source())
	r := w.room(slot.Namespace)
	delete(r.sources, slot.place())
	w.leave(r)
}

// Loss says what is known of the loss of the source at slot.
func (w *World) Loss(slot Slot) Loss { return w.lost[slot.source()] }

// SetLoss notes what a live look at a missing source has shown. A source that is there can't be lost, and one without
// copies is of no interest.
func (w *World) SetLoss(slot Slot, loss Loss) {
	if w.Source(slot) == nil && w.HasCopies(slot) {
		w.lost[slot.source()] = loss
	}
}

// Copy returns the copy, ours or not, that stands at slot, or nil. A change of the result takes effect with PutCopy.
func (w *World) Copy(slot Slot) *Copy {
	if r := w.record(slot); r != nil {
		return r.unpack(slot)
	}
	return nil
}

func (w *World) record(slot Slot) *record {
	if r := w.rooms[slot.Namespace]; r != nil {
		return r.copies[w.families[slot.place()]]
	}
	return nil
}

// PutCopy adds or replaces the copy at slot.
func (w *World) PutCopy(slot Slot, c *Copy) {
	w.unlink(slot)
	known, r := pack(c), w.room(slot.Namespace)
	of := w.families[slot.place()]
	if of == nil {
		of = &family{place: place{slot.Kind, shared(slot.Name)}}
		w.families[of.place] = of
	}
	of.copies++
	r.copies[of] = known
	source := sourceKey{slot.Kind, known.from, of.name}
	if w.copiesOf[source] == nil {
		w.copiesOf[source] = map[*room]struct{}{}
	}
	w.copiesOf[source][r] = struct{}{}
	if known.flags.has(ours) {
		w.number(slot.Kind, 0, 1)
	}
	w.countMade(source, known, 1)
	if known.binding() {
		r.count(known.from, 1)
	}
}

// DeleteCopy forgets the copy at slot, and with the last copy of a missing source what is known of its loss.
func (w *World) DeleteCopy(slot Slot) {
	known := w.record(slot)
	delete(w.compared, slot)
	if known != nil {
		w.recount(known.from)
	}
	if w.unlink(slot); known != nil && !w.HasCopies(slot.At(known.from)) {
		delete(w.lost, slot.At(known.from).source())
	}
}

func (w *World) unlink(slot Slot) {
	known, r := w.record(slot), w.rooms[slot.Namespace]
	if known == nil {
		return
	}
	of := w.families[slot.place()]
	delete(r.copies, of)
	if of.copies--; of.copies == 0 {
		delete(w.families, of.place)
	}
	source := slot.At(known.from).source()
	if delete(w.copiesOf[source], r); len(w.copiesOf[source]) == 0 {
		delete(w.copiesOf, source)
	}
	if known.flags.has(ours) {
		w.number(slot.Kind, 0, -1)
	}
	w.countMade(source, known, -1)
	if known.binding() {
		r.count(known.from, -1)
	}
	w.leave(r)
}

// room returns the room of a namespace, and makes one if there is none.
func (w *World) room(namespace string) *room {
	r := w.rooms[namespace]
	if r == nil {
		r = &room{name: shared(namespace), copies: map[*family]*record{}, sources: map[place]bool{}}
		w.rooms[r.name] = r
	}
	return r
}

// leave forgets a room in which nothing stands.
func (w *World) leave(r *room) {
	if len(r.copies) == 0 && len(r.sources) == 0 {
		delete(w.rooms, r.name)
	}
}

// countMade adds change to the number of copies of a source. Access copies, and copies that are not ours, are not counted.
func (w *World) countMade(source sourceKey, r *record, change int) {
	if !r.flags.has(ours) || r.flags.has(accessCopy) {
		return
	}
	if w.made[source.namespace] += change; w.made[source.namespace] == 0 {
		delete(w.made, source.namespace)
	}
	if w.madeOf[source] += change; w.madeOf[source] == 0 {
		delete(w.madeOf, source)
		delete(w.written, source)
	}
}

// NoteContent keeps what a read of the source s, which stands at slot, has shown. After a start, size is taken for the size of the copies
// that exist.
func (w *World) NoteContent(slot Slot, s *Source, content string, meta uint64, size int) {
	s.Content, s.Meta, s.Size = content, meta, size
	if key := slot.source(); w.written[key] == 0 && w.madeOf[key] > 0 {
		w.written[key] = size
	}
	w.recount(slot.Namespace)
}

// NoteWritten says that a copy of the source at slot was written with this content.
func (w *World) NoteWritten(slot Slot, content string) {
	s, key := w.Source(slot), slot.source()
	if s == nil || s.Content != content || w.written[key] == s.Size || s.Mode == v1alpha1.ModeCreate && w.written[key] > s.Size {
		return // of copies in mode create the others stay as large as they were
	}
	w.written[key] = s.Size
	w.recount(slot.Namespace)
}

func (w *World) number(kind schema.GroupKind, sources, copies int) {
	n := w.numbers[kind]
	w.numbers[kind] = numbers{n.sources + sources, n.copies + copies}
}
