package propagate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Everywhere stands for the whole cluster in place of a namespace.
const Everywhere = ""

// Sight says what can be seen of a kind in one namespace, or everywhere.
type Sight int8

// The sights of a kind that is not always watched in the whole cluster.
const (
	Awaited Sight = iota // it is about to be listed
	Seen
	Unseen // nobody knows what is there, until a right comes back or the API server answers
)

// sights are what can be seen of a kind, by namespace. What is seen everywhere is seen in each of them.
type sights struct{ sources, copies map[string]Sight }

func sightIn(all map[string]Sight, namespace string) Sight {
	if all[Everywhere] == Seen {
		return Seen
	}
	return all[namespace]
}

// SetNarrow says that a kind is watched as far as the rights go: from now on it is seen nowhere but where SetSight says so.
func (w *World) SetNarrow(kind schema.GroupKind) {
	w.sights[kind] = &sights{map[string]Sight{}, map[string]Sight{}}
}

// IsNarrow says whether a kind is watched as far as the rights go.
func (w *World) IsNarrow(kind schema.GroupKind) bool { return w.sights[kind] != nil }

// SetSight says what can be seen of the sources, or copies, or both, of a narrow kind in namespace, or everywhere.
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

// sees says whether all that a plan for slot rests on is in sight: what stands there, and the sources in these namespaces.
func (w *World) sees(slot Slot, sources ...string) bool {
	s := w.sights[slot.Kind]
	if s == nil {
		return true
	}
	return sightIn(s.copies, slot.Namespace) == Seen && !slices.ContainsFunc(sources, func(from string) bool { return w.sightOfSources(s, from) != Seen })
}

// SeesSource says whether the source at slot is in sight, or its absence.
func (w *World) SeesSource(slot Slot) bool {
	s := w.sights[slot.Kind]
	return s == nil || w.sightOfSources(s, slot.Namespace) == Seen
}

// sightOfSources is what can be seen of sources in namespace. Where there is no namespace there is no source.
func (w *World) sightOfSources(s *sights, namespace string) Sight {
	if w.Forest.Namespace(namespace) == nil {
		return Seen
	}
	return sightIn(s.sources, namespace)
}

// AwaitsSight says whether copies of some kind that gives no rights can't be planned in namespace yet, because what they rest on is not
// in sight: it is about to be listed, or may not be. Rights wait for that as they wait for rails, and no longer.
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

// KindIn are the slots of all sources and of all copies of a kind in namespace, or everywhere.
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

// OriginsIn are the slots in namespace, or everywhere, where sources of a kind stand, or stood of which there are copies.
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

// HoldsCopies says whether a copy stands in namespace that goes when its source's namespace leaves the path.
func (w *World) HoldsCopies(namespace string) bool {
	r := w.rooms[namespace]
	return r != nil && len(r.froms) > 0
}
