package copies

import (
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// limitsPause is how long a look at the limits of a tree is delayed, so that one look serves all slots of the tree that are held back one
// after the other.
const limitsPause = 100 * time.Millisecond

// mostHeldAnnounced bounds the Events of one look at the limits of a tree: a tenant may have thousands of sources.
const mostHeldAnnounced = 5

// recordHeld records that limits hold back the source of a slot, and has the limits of its tree looked at.
func (s *State) recordHeld(slot Slot, action Action) {
	s.world.Limits.NoteHeld(action.Source)
	s.queueAfter(limitsKey(s.world.Forest.RootOf(action.Source.Namespace)), limitsPause)
	s.endMeasured(slot)
	s.clearTrouble(slot, action)
}

// waitsForCount reports whether a new copy in a tree with limits must wait because not all kinds are listed yet: copies that were not listed
// would not be counted. If so, the slot is queued again.
func (s *State) waitsForCount(slot Slot, action Action) bool {
	if action.Verb != Create || !s.areSyncing() || !IsLimited(s.world.Forest, slot.Namespace) {
		return false
	}
	if source := s.world.Sources.At(action.Source); source == nil || source.Access {
		return false
	}
	s.queueAfter(slotKey(slot), syncRetry)
	return true
}

// reviewLimitsSoon has the limits of the tree around namespace looked at, if they hold something back.
func (s *State) reviewLimitsSoon(namespace string) {
	if s.world.Limits.HoldsBack(namespace) {
		s.queueAfter(limitsKey(s.world.Forest.RootOf(namespace)), limitsPause)
	}
}

// reviewLimits looks again at what the limits of root's tree hold back: it queues the sources that are released, and sends Events about
// sources that are newly held back.
func (s *State) reviewLimits(root string) {
	released, held := s.world.Limits.Reallot(root)
	for _, slot := range released {
		s.queue(sourceTask(slot))
		s.report(slot.Namespace)
	}
	if len(held) == 0 {
		return
	}
	texts := map[Slot]string{}
	for _, trouble := range s.world.Limits.HeldAround(root) {
		texts[trouble.Slot] = trouble.Text
	}
	for i, slot := range held {
		s.report(slot.Namespace)
		if source := s.world.Sources.At(slot); i < mostHeldAnnounced && source != nil {
			s.announceSource(slot, source.UID, true, v1alpha1.ReasonLimitExceeded, texts[slot])
		}
	}
}
