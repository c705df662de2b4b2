package propagate

import (
	"cmp"
	"slices"

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
	// after a start.
	Meta    uint64
	Foreign bool
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
	delete(w.lost, slot.source())
}

// Loss says what is known of the loss of the source at slot.
func (w *World) Loss(slot Slot) Loss { return w.lost[slot.source()] }

// SetLoss notes what a live look at a missing source has shown. A source that is there can't be lost.
func (w *World) SetLoss(slot Slot, loss Loss) {
	if w.Source(slot) == nil {
		w.lost[slot.source()] = loss
	}
}

// Copy returns the copy, ours or not, that stands at slot, or nil.
func (w *World) Copy(slot Slot) *Copy { return w.copies[slot] }

// PutCopy adds or replaces the copy at slot.
func (w *World) PutCopy(slot Slot, c *Copy) {
	w.DeleteCopy(slot)
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

// DeleteCopy forgets the copy at slot.
func (w *World) DeleteCopy(slot Slot) {
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

// SlotsIn are the slots in namespace that a plan may concern: where a copy stands, and where a source reaches.
func (w *World) SlotsIn(namespace string) []Slot {
	found := map[place]bool{}
	for p := range w.copiesIn[namespace] {
		found[p] = true
	}
	sources, _ := w.Forest.Sources(namespace)
	for _, from := range sources.Names {
		for p := range w.sourcesIn[from] {
			found[p] = true
		}
	}
	return slotsOf(found, namespace)
}

// SlotsOf are the slots that the source at slot may concern: every namespace below it, and every copy of it.
func (w *World) SlotsOf(slot Slot) []Slot {
	found := map[string]bool{}
	for below := range w.Forest.Below(slot.Namespace) {
		found[below] = true
	}
	for namespace := range w.copiesOf[slot.source()] {
		found[namespace] = true
	}
	slots := make([]Slot, 0, len(found))
	for namespace := range found {
		slots = append(slots, slot.At(namespace))
	}
	slices.SortFunc(slots, func(a, b Slot) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return slots
}

// SourcesIn are the sources of namespace.
func (w *World) SourcesIn(namespace string) []Slot { return slotsOf(w.sourcesIn[namespace], namespace) }

// Doubtful are the missing sources of namespace of which a live look could not say that they are lost.
func (w *World) Doubtful(namespace string) []Slot {
	var slots []Slot
	for key, loss := range w.lost {
		if loss == Doubtful && key.namespace == namespace {
			slots = append(slots, Slot{key.kind, key.namespace, key.name})
		}
	}
	return slots
}

// HasCopies says whether a copy of the source at slot stands anywhere.
func (w *World) HasCopies(slot Slot) bool { return len(w.copiesOf[slot.source()]) > 0 }

// Kind are the slots of all sources and of all copies of a kind.
func (w *World) Kind(kind schema.GroupKind) (sources, copies []Slot) {
	for key := range w.sources {
		if key.kind == kind {
			sources = append(sources, Slot{kind, key.namespace, key.name})
		}
	}
	for slot := range w.copies {
		if slot.Kind == kind {
			copies = append(copies, slot)
		}
	}
	return sources, copies
}

// Len counts the sources and the copies of ours of a kind.
func (w *World) Len(kind schema.GroupKind) (sources, copies int) {
	a, b := w.Kind(kind)
	return len(a), len(b)
}

func slotsOf(places map[place]bool, namespace string) []Slot {
	slots := make([]Slot, 0, len(places))
	for p := range places {
		slots = append(slots, Slot{p.kind, namespace, p.name})
	}
	slices.SortFunc(slots, func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Name, b.Name))
	})
	return slots
}
