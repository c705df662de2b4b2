package distribute

import "github.com/warren-tenancy/warren/internal/copies"

// farewells hand back or unlock the copies that deleted ResourceDistributions have left.
type farewells struct {
	*core
	copies *copyTable
	kinds  *kinds
}

// queueAll queues the copies that a deleted distribution has left, and that must be handed back or unlocked.
func (f *farewells) queueAll(by string) { f.queueKeys(f.copies.findFarewells(by)...) }

// start hands back or unlocks the next copy that a deleted distribution has left in one namespace. Once all distributions are known, one
// that is not found is deleted.
func (f *farewells) start(k Key) {
	if !f.listed {
		return
	}
	for slot, one := range f.copies.In(k.Namespace) {
		kind, verb := f.kinds.at(slot.Kind), Farewell(one)
		if one.By == k.Distribution && verb != Nothing && kind.state == copies.KindActive {
			f.emitOutput(WriteCopy{Slot: slot, Resource: kind.resource, Action: Action{Verb: verb}, Copy: one, by: k.Distribution})
			return
		}
	}
}
