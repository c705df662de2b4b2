package propagate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Source is what is known of an object that is propagated.
type Source struct {
	UID, ResourceVersion string
	// Mode is create, update or none.
	Mode string
	// Invalid is why the object can't be judged: an unknown mode, a selector that does not parse. It freezes its copies.
	Invalid string
	// Excluded is why the object is never propagated.
	Excluded string
	// Selector on the namespaces below; nil selects all.
	Selector labels.Selector
	// Terminating sources are left as they are.
	Terminating bool
	// Content is the hash of what is written from it, Meta the digest of the labels and annotations in it. Both are empty
	// until the body of this version has been read.
	Content string
	Meta    uint64
}

// Copy is what is known of an object with the label inherited-from. It is kept small: there may be a hundred thousand.
type Copy struct {
	UID, ResourceVersion, From string
	Hash                       Hash
	// Ours says that the place in the hash fits where the copy stands; anything else is somebody's object.
	Ours        bool
	Terminating bool
	// Digest covers the metadata as our own last write left it; see Digest. 0 after a start.
	Digest uint64
	// Meta covers labels and annotations, Foreign says that another manager owns a field that matters: what shows drift
	// after a start. Marked says that a key of ours stands there which no copy carries: drift for certain.
	Meta    uint64
	Foreign bool
	Marked  bool
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

// World is everything that a plan rests on. It is not safe for concurrent use.
type World struct {
	Forest *forest.Snapshot

	kinds   map[schema.GroupKind]kindState
	sources map[sourceKey]*Source
	copies  map[Slot]*Copy

	sourcesIn map[string]map[place]bool     // by namespace
	copiesIn  map[string]map[place]bool     // by namespace
	copiesOf  map[sourceKey]map[string]bool // by source: the namespaces with a copy
	fromIn    map[string]map[string]int     // by namespace: how many update copies of ours come from where
	lost      map[sourceKey]Loss
}

// Loss is what a live look at a missing source has shown.
type Loss int

// What may be known of a missing source. Only a confirmed loss lets its copies be deleted.
const (
	Unverified Loss = iota
	Confirmed
	Doubtful
)

// NewWorld returns a world without objects.
func NewWorld(f *forest.Snapshot) *World {
	return &World{
		Forest:    f,
		kinds:     map[schema.GroupKind]kindState{},
		sources:   map[sourceKey]*Source{},
		copies:    map[Slot]*Copy{},
		sourcesIn: map[string]map[place]bool{},
		copiesIn:  map[string]map[place]bool{},
		copiesOf:  map[sourceKey]map[string]bool{},
		fromIn:    map[string]map[string]int{},
		lost:      map[sourceKey]Loss{},
	}
}

func (s Slot) source() sourceKey { return sourceKey{s.Kind, s.Namespace, s.Name} }
func (s Slot) place() place      { return place{s.Kind, s.Name} }

// SetKind says how a kind is propagated, and whether its sources and copies are all known. Nothing is planned for a kind
// that is not synced: absence would mean nothing.
func (w *World) SetKind(kind schema.GroupKind, mode KindMode, synced bool) {
	w.kinds[kind] = kindState{mode, synced}
}

// ForgetKind drops a kind and all that is known of it.
func (w *World) ForgetKind(kind schema.GroupKind) {
	delete(w.kinds, kind)
	for key := range w.sources {
		if key.kind == kind {
			w.DeleteSource(Slot{kind, key.namespace, key.name})
		}
	}
	for slot := range w.copies {
		if slot.Kind == kind {
			w.DeleteCopy(slot)
		}
	}
}

// Source returns the source that stands at slot, or nil.
func (w *World) Source(slot Slot) *Source { return w.sources[slot.source()] }

// PutSource adds or replaces the source at slot.
func (w *World) PutSource(slot Slot, s *Source) {
	w.sources[slot.source()] = s
	add(w.sourcesIn, slot.Namespace, slot.place())
	delete(w.lost, slot.source())
}

// DeleteSource forgets the source at slot. Its copies stay until its loss is confirmed.
func (w *World) DeleteSource(slot Slot) {
	delete(w.sources, slot.source())
	drop(w.sourcesIn, slot.Namespace, slot.place())
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

// Copy returns the copy, ours or not, that stands at slot, or nil.
func (w *World) Copy(slot Slot) *Copy { return w.copies[slot] }

// PutCopy adds or replaces the copy at slot.
func (w *World) PutCopy(slot Slot, c *Copy) {
	w.unlink(slot)
	w.copies[slot] = c
	add(w.copiesIn, slot.Namespace, slot.place())
	add(w.copiesOf, slot.At(c.From).source(), slot.Namespace)
	if c.binding() {
		if w.fromIn[slot.Namespace] == nil {
			w.fromIn[slot.Namespace] = map[string]int{}
		}
		w.fromIn[slot.Namespace][c.From]++
	}
}

// DeleteCopy forgets the copy at slot, and with the last copy of a missing source what is known of its loss.
func (w *World) DeleteCopy(slot Slot) {
	c := w.copies[slot]
	if w.unlink(slot); c != nil && !w.HasCopies(slot.At(c.From)) {
		delete(w.lost, slot.At(c.From).source())
	}
}

func (w *World) unlink(slot Slot) {
	c := w.copies[slot]
	if c == nil {
		return
	}
	delete(w.copies, slot)
	drop(w.copiesIn, slot.Namespace, slot.place())
	drop(w.copiesOf, slot.At(c.From).source(), slot.Namespace)
	if froms := w.fromIn[slot.Namespace]; c.binding() {
		if froms[c.From]--; froms[c.From] == 0 {
			delete(froms, c.From)
		}
		if len(froms) == 0 {
			delete(w.fromIn, slot.Namespace)
		}
	}
}

// binding says whether the copy goes when its source's namespace leaves the path.
func (c *Copy) binding() bool { return c.Ours && c.Hash.Mode == v1alpha1.ModeUpdate }

func add[K, V comparable](m map[K]map[V]bool, key K, value V) {
	if m[key] == nil {
		m[key] = map[V]bool{}
	}
	m[key][value] = true
}

func drop[K, V comparable](m map[K]map[V]bool, key K, value V) {
	if delete(m[key], value); len(m[key]) == 0 {
		delete(m, key)
	}
}
