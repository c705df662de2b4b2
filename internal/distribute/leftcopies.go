package distribute

import "github.com/warren-tenancy/warren/internal/copies"

// leftCopies hand back or unlock the copies that deleted ResourceDistributions have left.
type leftCopies struct {
	*core
	copies *copyTable
	kinds  *kinds
}

// queueAll queues the copies that a deleted distribution has left, and that must be handed back or unlocked.
func (f *leftCopies) queueAll(by string) { f.queueKeys(f.copies.findLeft(by)...) }

// startKey hands back or unlocks the next copy that a deleted distribution has left in one namespace. Once all
// distributions are known, one that is not found is deleted.
func (f *leftCopies) startKey(k Key) {
	// A distribution that was not listed yet looks like a deleted one.
	if !f.listed {
		return
	}
	for slot, one := range f.copies.In(k.Namespace) {
		kind, verb := f.kinds.findKind(slot.Kind), PlanLeft(one)
		if one.By == k.Distribution && verb != Nothing && kind.state == copies.KindActive {
			f.emitOutput(WriteCopy{Slot: slot, Resource: kind.resource, Action: Action{Verb: verb}, Copy: one, by: k.Distribution,
				flight: f.copies.begin(slot)})
			return
		}
	}
}
