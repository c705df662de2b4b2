package copies

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Slot is the place of a source or a copy, whether or not that object exists.
type Slot struct {
	Kind      schema.GroupKind
	Namespace string
	Name      string
}

// String is how logs name a slot. It is no key: kinds of several groups may have one name. ID is one.
func (s Slot) String() string { return s.Kind.Kind + " " + s.Namespace + "/" + s.Name }

// ID tells a slot from every other, where a key must be a text.
func (s Slot) ID() string { return s.Kind.String() + "/" + s.Namespace + "/" + s.Name }

// SlotOf returns the slot of the object of a kind that has this name.
func SlotOf(kind schema.GroupKind, name types.NamespacedName) Slot {
	return Slot{kind, name.Namespace, name.Name}
}

// NamespacedName is the slot without its kind.
func (s Slot) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// At is the slot of the same kind and name in another namespace.
func (s Slot) At(namespace string) Slot {
	s.Namespace = namespace
	return s
}

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

// World is everything that a plan rests on. Each exported field has methods for its own part. World itself has the
// methods that need several fields: plans, and changes of sources and copies, because limits and losses depend on
// these. It is not safe for concurrent use.
type World struct {
	Forest  *forest.Snapshot
	Sources *Sources
	Copies  *Copies
	Sights  *Sights
	Limits  *Allotter

	kinds map[schema.GroupKind]kindState
	lost  map[sourceKey]Loss // of missing sources that have copies
}

// Loss is what a live read of a missing source has shown.
type Loss int

// A live read has shown nothing yet (Unverified), the source gone (Confirmed) or present (Doubtful), or its namespace
// gone or terminating (GoneWithNamespace). Only for Confirmed are the source's copies deleted; access copies in a
// halted or protected namespace also for GoneWithNamespace.
const (
	Unverified Loss = iota
	Confirmed
	Doubtful
	GoneWithNamespace
)

// NewWorld returns a world without objects.
func NewWorld(f *forest.Snapshot) *World {
	sources := newSources()
	w := &World{
		Forest: f, Sources: sources, Copies: newCopies(sources.hasSource), Sights: newSights(),
		kinds: map[schema.GroupKind]kindState{}, lost: map[sourceKey]Loss{},
	}
	w.Limits = newAllotter(w)
	return w
}

// SetKind describes how a kind is propagated, and whether all its sources and copies are known. Nothing is planned for
// a kind that is not synced, because an object that is missing then may exist all the same.
func (w *World) SetKind(kind schema.GroupKind, mode KindMode, synced bool) {
	w.kinds[kind] = kindState{mode, synced}
	w.Limits.recountAll()
}

// Synced reports whether plans are made for a kind.
func (w *World) Synced(kind schema.GroupKind) bool { return w.kinds[kind].synced }

// ForgetKind drops a kind and all that is known of it.
func (w *World) ForgetKind(kind schema.GroupKind) {
	delete(w.kinds, kind)
	w.Sights.dropKind(kind)
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

// Len returns how many sources, and how many copies of ours, of a kind there are.
func (w *World) Len(kind schema.GroupKind) (sources, copies int) {
	return w.Sources.counts[kind], w.Copies.counts[kind]
}

// PutSource adds or replaces the source at slot.
func (w *World) PutSource(slot Slot, s *Source) {
	w.Sources.setSource(slot, s)
	w.Copies.tally.recordOrphaned(slot.source())
	w.Limits.queueRecount(slot.Namespace)
	delete(w.lost, slot.source())
}

// DeleteSource forgets the source at slot. Its copies stay until its loss is confirmed.
func (w *World) DeleteSource(slot Slot) {
	if w.Sources.At(slot) == nil {
		return
	}
	w.Sources.removeSource(slot)
	w.Copies.tally.recordOrphaned(slot.source())
	w.Limits.queueRecount(slot.Namespace)
}

// PutCopy adds or replaces the copy at slot. Limits are counted anew only for the source that loses a copy: where one is
// written, the room for it was counted before.
func (w *World) PutCopy(slot Slot, c *Copy) {
	was, now := w.Copies.findRecord(slot), packCopy(c)
	if was != nil && (was.from != now.from || was.counts() && !now.counts()) {
		w.Limits.queueRecount(was.from)
	}
	if now.counts() && (was == nil || was.from != now.from || !was.counts()) {
		w.Limits.noteMade(slot, now)
	}
	if was != nil {
		w.Limits.notePlaced(slot, was, -1)
	}
	w.Copies.setRecord(slot, now)
	w.Limits.notePlaced(slot, now, 1)
	if was != nil && was.content != now.content && w.Limits.settleSize(slot.At(now.from).source()) {
		w.Limits.queueRecount(now.from)
	}
}

// DeleteCopy forgets the copy at slot. With the last copy of a source, it forgets the Loss of that source, too.
func (w *World) DeleteCopy(slot Slot) {
	known := w.Copies.removeRecord(slot)
	if known == nil {
		return
	}
	w.Limits.notePlaced(slot, known, -1)
	w.Limits.queueRecount(known.from)
	if source := slot.At(known.from); !w.Copies.HasCopyOf(source) {
		delete(w.lost, source.source())
	}
}

// NoteContent records what the body b of the source s at slot has shown. After a start, the size of b also counts as
// the size of the existing copies.
func (w *World) NoteContent(slot Slot, s *Source, b *Body) {
	s.TakeBody(b)
	w.Copies.tally.recordFoundSize(slot.source(), b.Size)
	w.Limits.queueRecount(slot.Namespace)
}

// ForgetContent has the source at slot read again.
func (w *World) ForgetContent(slot Slot) { w.Sources.At(slot).forgetContent() }

// NoteWritten records that a copy was written, by PutCopy, as an action asked.
func (w *World) NoteWritten(a Action) {
	size := a.Size
	if s := w.Sources.At(a.Source); s != nil && s.Content == a.Hash.Content {
		size = s.Size
	} // else the source has gone, or was changed, since the write was planned
	if w.Copies.tally.recordWrittenSize(a.Source.source(), size) {
		w.Limits.queueRecount(a.Source.Namespace)
	}
}

// Loss returns what is known of the loss of the source at slot.
func (w *World) Loss(slot Slot) Loss { return w.lost[slot.source()] }

// SetLoss records what a live read of a missing source has shown. It does nothing for a source that exists, or that has
// no copies.
func (w *World) SetLoss(slot Slot, loss Loss) {
	if w.Sources.At(slot) == nil && w.Copies.HasCopyOf(slot) {
		w.lost[slot.source()] = loss
	}
}

// Doubtful returns the slots of missing sources in namespace, or Everywhere, whose loss a live read could not confirm.
func (w *World) Doubtful(namespace string) []Slot {
	var slots []Slot
	for key, loss := range w.lost {
		if (loss == Doubtful || loss == GoneWithNamespace) && (namespace == Everywhere || key.namespace == namespace) {
			slots = append(slots, key.slot())
		}
	}
	return slots
}

// OriginsIn returns the slots of sources of a kind in namespace, or Everywhere: of those that are known, and of missing
// ones that have copies.
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

// SlotsIn returns the slots in namespace that a plan may concern, by kind and name: slots that have a copy, and slots
// that a source reaches.
func (w *World) SlotsIn(namespace string) []Slot {
	found := map[place]bool{}
	if r := w.Copies.rooms[namespace]; r != nil {
		for of := range r.copies {
			found[of.place] = true
		}
	}
	sources, _ := w.Forest.Sources(namespace)
	for _, from := range sources.Names {
		maps.Copy(found, w.Sources.places[from])
	}
	return slotsOf(found, namespace)
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

// NewestIn returns the highest resourceVersion of a copy in namespace; "" if there is none.
func (w *World) NewestIn(namespace string) string {
	newest := ""
	for _, slot := range w.SlotsIn(namespace) {
		if c := w.Copies.At(slot); c != nil && (newest == "" || forest.IsNewer(c.ResourceVersion, newest)) {
			newest = c.ResourceVersion
		}
	}
	return newest
}
