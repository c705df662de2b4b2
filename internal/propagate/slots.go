package propagate

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SlotsIn returns the slots in namespace that a plan may concern, by kind and name: slots where a copy stands, and slots that a source
// reaches.
func (w *World) SlotsIn(namespace string) []Slot {
	found := map[place]bool{}
	if r := w.rooms[namespace]; r != nil {
		for of := range r.copies {
			found[of.place] = true
		}
	}
	sources, _ := w.Forest.Sources(namespace)
	for _, from := range sources.Names {
		if r := w.rooms[from]; r != nil {
			maps.Copy(found, r.sources)
		}
	}
	return slotsOf(found, namespace)
}

// SlotsOf returns the slots that the source at slot may concern: one in every namespace below the source, and one for every copy of it. They
// have no order, so that no namespace is always the last.
func (w *World) SlotsOf(slot Slot) []Slot {
	found := map[string]bool{}
	for below := range w.Forest.Below(slot.Namespace) {
		found[below] = true
	}
	for r := range w.copiesOf[slot.source()] {
		found[r.name] = true
	}
	slots := make([]Slot, 0, len(found))
	for namespace := range found {
		slots = append(slots, slot.At(namespace))
	}
	return slots
}

// Doubtful returns the slots of missing sources in namespace whose loss a live read could not confirm.
func (w *World) Doubtful(namespace string) []Slot {
	var slots []Slot
	for key, loss := range w.lost {
		if (loss == Doubtful || loss == GoneWithNamespace) && key.namespace == namespace {
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
	for _, r := range w.rooms {
		for of := range r.copies {
			if of.kind == kind {
				copies = append(copies, Slot{kind, r.name, of.name})
			}
		}
	}
	return sources, copies
}

// Len counts the sources and the copies of ours of a kind.
func (w *World) Len(kind schema.GroupKind) (sources, copies int) {
	n := w.numbers[kind]
	return n.sources, n.copies
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
