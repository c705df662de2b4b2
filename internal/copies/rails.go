package copies

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RoleBindingKind is the kind whose copies give rights. Copies of every other kind are rails: they may limit what those
// rights allow.
var RoleBindingKind = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}

// GivesRights reports whether a copy at slot gives somebody rights in its namespace.
func GivesRights(slot Slot) bool { return slot.Kind == RoleBindingKind }

// MissingRails returns the slots in namespace of rails that are still to be made, and of rails whose source is still to
// be read. They are in the order of SlotsIn.
func (w *World) MissingRails(namespace string) []Slot {
	var missing []Slot
	for _, slot := range w.SlotsIn(namespace) {
		if w.MissesRail(slot) {
			missing = append(missing, slot)
		}
	}
	return missing
}

// MissesRail reports whether slot is one of MissingRails.
func (w *World) MissesRail(slot Slot) bool {
	if GivesRights(slot) {
		return false
	}
	if w.Plan(slot).Verb == Create {
		return true
	}
	// An outdated copy limits rights as well as it did before, so rights need not wait for its update.
	if w.Copies.findRecord(slot) != nil {
		return false
	}
	p := w.newPlanner(slot)
	return p.waitsForSource()
}
