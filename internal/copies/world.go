package copies

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/forest"
)

// KindMode is how a kind is propagated.
type KindMode string

// The modes of a kind.
const (
	OptIn  KindMode = "OptIn"
	All    KindMode = "All"
	Remove KindMode = "Remove"
)

type kindState struct {
	mode   KindMode
	synced bool
}

// World is everything that a plan rests on. Each field owns what it knows, and answers for it; World itself has what takes several of them:
// changes of sources and copies, on which limits and losses depend, and plans. It is not safe for concurrent use.
type World struct {
	Forest  *forest.Snapshot
	Sources *Sources
	Copies  *Copies
	Sights  *Sights
	Limits  *Allotter

	kinds map[schema.GroupKind]kindState
	lost  map[sourceKey]Loss // of missing sources that have copies
}

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
	w := &World{
		Forest: f, Sources: newSources(), Copies: newCopies(), Sights: newSights(),
		kinds: map[schema.GroupKind]kindState{}, lost: map[sourceKey]Loss{},
	}
	w.Limits = newAllotter(w)
	return w
}

// SetKind describes how a kind is propagated, and whether all its sources and copies are known. Nothing is planned for a kind that is not
// synced, because an object that is missing then may exist all the same.
func (w *World) SetKind(kind schema.GroupKind, mode KindMode, synced bool) {
	w.kinds[kind] = kindState{mode, synced}
	w.Limits.recountAll()
}

// Synced reports whether plans are made for a kind.
func (w *World) Synced(kind schema.GroupKind) bool { return w.kinds[kind].synced }

// ForgetKind drops a kind and all that is known of it.
func (w *World) ForgetKind(kind schema.GroupKind) {
	delete(w.kinds, kind)
	w.Sights.forget(kind)
	sources, copies := w.KindIn(kind, Everywhere)
	for _, slot := range sources {
		w.DeleteSource(slot)
	}
	for _, slot := range copies {
		w.DeleteCopy(slot)
	}
}

// KindIn returns the slots of all sources and of all copies of a kind in namespace, or Everywhere.
func (w *World) KindIn(kind schema.GroupKind, namespace string) (sources, copies []Slot) {
	return w.Sources.In(kind, namespace), w.Copies.In(kind, namespace)
}

// Len counts the sources and the copies of ours of a kind.
func (w *World) Len(kind schema.GroupKind) (sources, copies int) {
	return w.Sources.counts[kind], w.Copies.counts[kind]
}

// PutSource adds or replaces the source at slot.
func (w *World) PutSource(slot Slot, s *Source) {
	w.Sources.put(slot, s)
	w.Limits.queueRecount(slot.Namespace)
	delete(w.lost, slot.source())
}

// DeleteSource forgets the source at slot. Its copies stay until its loss is confirmed.
func (w *World) DeleteSource(slot Slot) {
	if w.Sources.At(slot) == nil {
		return
	}
	w.Sources.delete(slot)
	w.Limits.queueRecount(slot.Namespace)
}

// PutCopy adds or replaces the copy at slot. Limits are not counted anew: where a copy is written, the room for it was counted before.
func (w *World) PutCopy(slot Slot, c *Copy) { w.Copies.put(slot, pack(c)) }

// DeleteCopy forgets the copy at slot, and with the last copy of a missing source what is known of its loss.
func (w *World) DeleteCopy(slot Slot) {
	known := w.Copies.delete(slot)
	if known == nil {
		return
	}
	w.Limits.queueRecount(known.from)
	if source := slot.At(known.from); !w.Copies.HasCopyOf(source) {
		delete(w.lost, source.source())
	}
}

// NoteContent keeps what the body of the source s, which stands at slot, has shown. After a start, its size is taken for the size of the
// copies that exist.
func (w *World) NoteContent(slot Slot, s *Source, b *Body) {
	s.Content, s.Meta, s.Size, s.Role = b.Content, b.Meta, b.Size, b.Role
	w.Copies.tally.recordFoundSize(slot.source(), b.Size)
	w.Limits.queueRecount(slot.Namespace)
}

// NoteWritten reports that a copy of the source at slot was written with this content.
func (w *World) NoteWritten(slot Slot, content string) {
	s := w.Sources.At(slot)
	if s != nil && s.Content == content && w.Copies.tally.recordWrittenSize(slot.source(), s) {
		w.Limits.queueRecount(slot.Namespace)
	}
}

// Loss describes what is known of the loss of the source at slot.
func (w *World) Loss(slot Slot) Loss { return w.lost[slot.source()] }

// SetLoss notes what a live look at a missing source has shown. A source that is there can't be lost, and one without
// copies is of no interest.
func (w *World) SetLoss(slot Slot, loss Loss) {
	if w.Sources.At(slot) == nil && w.Copies.HasCopyOf(slot) {
		w.lost[slot.source()] = loss
	}
}

// Doubtful returns the slots of missing sources in namespace whose loss a live read could not confirm.
func (w *World) Doubtful(namespace string) []Slot {
	var slots []Slot
	for key, loss := range w.lost {
		if (loss == Doubtful || loss == GoneWithNamespace) && key.namespace == namespace {
			slots = append(slots, key.slot())
		}
	}
	return slots
}

// OriginsIn returns the slots of sources of a kind in namespace, or Everywhere: of those that are known, and of missing ones that have
// copies.
func (w *World) OriginsIn(kind schema.GroupKind, namespace string) []Slot {
	found := map[Slot]bool{}
	for _, slot := range w.Sources.In(kind, namespace) {
		found[slot] = true
	}
	for key := range w.Copies.bySource {
		if key.kind == kind && (namespace == Everywhere || key.namespace == namespace) {
			found[key.slot()] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}
