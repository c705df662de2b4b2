package copies

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Slot is the place of one copy, whether or not the copy exists.
type Slot struct {
	Kind      schema.GroupKind
	Namespace string
	Name      string
}

// String is how logs name a slot.
func (s Slot) String() string { return s.Kind.Kind + " " + s.Namespace + "/" + s.Name }

// At is the slot of the same kind and name in another namespace.
func (s Slot) At(namespace string) Slot {
	s.Namespace = namespace
	return s
}

// SlotsIn returns the slots in namespace that a plan may concern, by kind and name: slots where a copy stands, and slots that a source
// reaches.
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

// SlotsOf returns the slots that the source at slot may concern: one in every namespace below the source, and one for every copy of it. They
// have no order, so that no namespace is always the last.
func (w *World) SlotsOf(slot Slot) []Slot {
	found := map[string]bool{}
	for below := range w.Forest.Below(slot.Namespace) {
		found[below] = true
	}
	for r := range w.Copies.bySource[slot.source()] {
		found[r.name] = true
	}
	slots := make([]Slot, 0, len(found))
	for namespace := range found {
		slots = append(slots, slot.At(namespace))
	}
	return slots
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
