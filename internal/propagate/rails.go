package propagate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// roleBindings is the kind whose copies give rights. Copies of every other kind are rails: they may hold in bounds what those
// rights allow.
var roleBindings = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}

// GivesRights says whether a copy at slot gives somebody rights in its namespace.
func GivesRights(slot Slot) bool { return slot.Kind == roleBindings }

// MissingRails returns the slots in namespace of rails that are still to be made, and of rails whose source is still to be read. They are in
// the order of SlotsIn.
func (w *World) MissingRails(namespace string) []Slot {
	var missing []Slot
	for _, slot := range w.SlotsIn(namespace) {
		if w.MissesRail(slot) {
			missing = append(missing, slot)
		}
	}
	return missing
}

// MissesRail says whether slot is one of MissingRails.
func (w *World) MissesRail(slot Slot) bool {
	if GivesRights(slot) {
		return false
	}
	if w.Plan(slot).Verb == Create {
		return true
	}
	return w.record(slot) == nil && w.awaitsSource(slot)
}

// awaitsSource says whether the source that reaches slot is known, but was not read yet.
func (w *World) awaitsSource(slot Slot) bool {
	kind := w.kinds[slot.Kind]
	sources, ok := w.Forest.Sources(slot.Namespace)
	if !ok || !kind.synced || kind.mode == Remove || !w.sees(slot, sources.Names...) {
		return false
	}
	_, s, v := w.wanted(slot, sources)
	return v == frozen && s.Invalid == "" && !s.Terminating && s.Mode != v1alpha1.ModeNone
}

// HoldsRightsFrom says whether a RoleBinding stands in namespace that was copied from the namespace called from: the subjects of that
// RoleBinding have rights in namespace already.
func (w *World) HoldsRightsFrom(namespace, from string) bool {
	r := w.rooms[namespace]
	if r == nil {
		return false
	}
	for of, c := range r.copies {
		if of.kind == roleBindings && c.flags.has(ours) && c.from == from {
			return true
		}
	}
	return false
}
