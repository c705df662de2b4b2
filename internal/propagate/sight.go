package propagate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Everywhere stands for the whole cluster in place of a namespace.
const Everywhere = ""

// Sight says whether the operator sees the objects of a narrow kind in one namespace, or in the whole cluster. Only where the kind is Seen
// does a missing object not exist.
type Sight int8

// The sights of a narrow kind.
const (
	Awaited Sight = iota // the kind is about to be listed there
	Seen
	Unseen // the operator can't list the kind there, until a right comes back or the API server answers
)

// sights hold the sight of the sources and of the copies of a narrow kind, by namespace. A kind that is Seen Everywhere is Seen in each
// namespace.
type sights struct{ sources, copies map[string]Sight }

func sightIn(all map[string]Sight, namespace string) Sight {
	if all[Everywhere] == Seen {
		return Seen
	}
	return all[namespace]
}

// SetNarrow makes a kind narrow: watched only where the operator's RBAC allows. From now on the kind is seen only where SetSight says so.
func (w *World) SetNarrow(kind schema.GroupKind) {
	w.sights[kind] = &sights{map[string]Sight{}, map[string]Sight{}}
}

// IsNarrow says whether SetNarrow was called for a kind.
func (w *World) IsNarrow(kind schema.GroupKind) bool { return w.sights[kind] != nil }

// SetSight sets the sight of the sources, or copies, or both, of a narrow kind in namespace, or Everywhere. For any other kind it does
// nothing.
func (w *World) SetSight(kind schema.GroupKind, namespace string, sources, copies bool, now Sight) {
	s := w.sights[kind]
	if s == nil {
		return
	}
	if sources {
		setSight(s.sources, namespace, now)
	}
	if copies {
		setSight(s.copies, namespace, now)
	}
}

func setSight(all map[string]Sight, namespace string, now Sight) {
	if all[namespace] = now; now == Awaited {
		delete(all, namespace)
	}
}

// sees says whether the operator sees all that a plan for slot rests on: the copies in its namespace, and the sources in these namespaces.
func (w *World) sees(slot Slot, sources ...string) bool {
	s := w.sights[slot.Kind]
	if s == nil {
		return true
	}
	return sightIn(s.copies, slot.Namespace) == Seen && !slices.ContainsFunc(sources, func(from string) bool { return w.sightOfSources(s, from) != Seen })
}

// SeesSource says whether the operator sees the place of the source at slot: a source that is missing there doesn't exist.
func (w *World) SeesSource(slot Slot) bool {
	s := w.sights[slot.Kind]
	return s == nil || w.sightOfSources(s, slot.Namespace) == Seen
}

// sightOfSources returns the sight of sources in namespace; Seen for a namespace that doesn't exist, which holds no source.
func (w *World) sightOfSources(s *sights, namespace string) Sight {
	if w.Forest.Namespace(namespace) == nil {
		return Seen
	}
	return sightIn(s.sources, namespace)
}

// AwaitsSight says whether rails of some kind can't be planned in namespace yet, because the operator doesn't see the copies there or the
// sources above: they are about to be listed, or may not be listed. Rights wait for sight as they wait for missing rails, and no longer.
func (w *World) AwaitsSight(namespace string) bool {
	if len(w.sights) == 0 {
		return false
	}
	from, ok := w.Forest.Sources(namespace)
	if !ok {
		return false
	}
	for kind, s := range w.sights {
		switch {
		case kind == roleBindings, !w.kinds[kind].synced, w.kinds[kind].mode == Remove:
		case sightIn(s.copies, namespace) != Seen, slices.ContainsFunc(from.Names, func(name string) bool { return w.sightOfSources(s, name) != Seen }):
			return true
		}
	}
	return false
}

// KindIn returns the slots of all sources and of all copies of a kind in namespace, or Everywhere.
func (w *World) KindIn(kind schema.GroupKind, namespace string) (sources, copies []Slot) {
	if namespace == Everywhere {
		return w.Kind(kind)
	}
	r := w.rooms[namespace]
	if r == nil {
		return nil, nil
	}
	for at := range r.sources {
		if at.kind == kind {
			sources = append(sources, Slot{kind, namespace, at.name})
		}
	}
	for of := range r.copies {
		if of.kind == kind {
			copies = append(copies, Slot{kind, namespace, of.name})
		}
	}
	return sources, copies
}

// OriginsIn returns the slots of sources of a kind in namespace, or Everywhere: of those that are known, and of missing ones that have
// copies.
func (w *World) OriginsIn(kind schema.GroupKind, namespace string) []Slot {
	found := map[Slot]bool{}
	sources, _ := w.KindIn(kind, namespace)
	for _, slot := range sources {
		found[slot] = true
	}
	for key := range w.copiesOf {
		if key.kind == kind && (namespace == Everywhere || key.namespace == namespace) {
			found[Slot{kind, key.namespace, key.name}] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// HoldsCopies says whether a copy of ours in mode update stands in namespace. Such a copy is deleted when its source's namespace is no longer
// above.
func (w *World) HoldsCopies(namespace string) bool {
	r := w.rooms[namespace]
	return r != nil && len(r.froms) > 0
}
