package copies

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// A RoleBinding that names a Role means another Role in each namespace. Whoever wrote the source was asked by the API server for the rights
// of the Role that stands beside the source; the operator may bind every Role and is asked for nothing. So a copy of such a binding stays only
// as long as the copy of that very Role does: else it would bind to the next Role of that name, which somebody more powerful makes there.

// roles is the kind that such a RoleBinding names.
var roles = schema.GroupKind{Group: roleBindings.Group, Kind: "Role"}

// hasRole reports whether the Role that the RoleBinding at source names is in the slot's namespace, too: as the copy of the Role beside
// the source. Where the operator does not see Roles, it reports true, and the live read before each write decides alone.
func (p *planner) hasRole(source Slot, name string) bool {
	role := Slot{Kind: roles, Namespace: p.slot.Namespace, Name: name}
	if !p.world.kinds[roles].synced || !p.world.Sights.sees(role, p.world.Forest, source.Namespace) {
		return true
	}
	origin := p.world.originOfCopy(role)
	return origin != "" && (origin == source.Namespace || origin == p.world.originOfCopy(role.At(source.Namespace)))
}

// originOfCopy returns the namespace of the source whose copy, one that nobody else may change, stands at slot; "" if there is none. A copy
// in mode create counts where its source is in mode update by now: the copy follows.
func (w *World) originOfCopy(slot Slot) string {
	c := w.Copies.record(slot)
	if c == nil || !c.flags.has(ours) || c.flags.has(terminating) {
		return ""
	}
	if s := w.Sources.At(slot.At(c.from)); !c.binding() && (s == nil || s.Mode != v1alpha1.ModeUpdate) {
		return ""
	}
	return c.from
}

// BindingsTo returns the slots of the copied RoleBindings, in the namespace of the Role at slot, that name this Role.
func (w *World) BindingsTo(role Slot) []Slot {
	if role.Kind != roles {
		return nil
	}
	var bindings []Slot
	for _, slot := range w.Copies.In(roleBindings, role.Namespace) {
		if s := w.Sources.At(slot.At(w.Copies.record(slot).from)); s != nil && s.Role == role.Name {
			bindings = append(bindings, slot)
		}
	}
	return bindings
}
