package copyengine

import (
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// limitsPause is how long a look at the limits of a tree is delayed, so that one look serves all slots of the tree that are held back one
// after the other.
const limitsPause = 100 * time.Millisecond

// mostHeldAnnounced bounds the Events of one look at the limits of a tree: a tenant may have thousands of sources.
const mostHeldAnnounced = 5

// recordHeld records that limits hold back the source of a slot, and queues a look at the limits of the source's tree.
func (s *State) recordHeld(slot copies.Slot, action copies.Action) {
	s.world.Limits.NoteHeld(action.Source)
	s.queueAfter(limitsKey(s.world.Forest.RootOf(action.Source.Namespace)), limitsPause)
	s.endMeasured(slot)
	s.clearTrouble(slot, action)
}

// waitsForCount reports whether a new copy in a tree with limits must wait because not all kinds are listed yet: copies that were not
// listed would not be counted. If so, the slot is queued again.
func (s *State) waitsForCount(slot copies.Slot, action copies.Action) bool {
	if action.Verb != copies.Create || !s.areSyncing() || !copies.IsLimited(s.world.Forest, slot.Namespace) {
		return false
	}
	if source := s.world.Sources.At(action.Source); source == nil || source.Access {
		return false
	}
	s.queueAfter(slotKey(slot), syncRetry)
	return true
}

// reviewLimitsSoon queues, after limitsPause, a look at the limits of the tree around namespace, if they hold sources back.
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
		s.queueKeys(sourceTask(slot))
		s.reportNamespaces(slot.Namespace)
	}
	if len(held) == 0 {
		return
	}
	texts := map[copies.Slot]string{}
	for _, trouble := range s.world.Limits.HeldAround(root) {
		texts[trouble.Slot] = trouble.Text
	}
	for i, slot := range held {
		s.reportNamespaces(slot.Namespace)
		if source := s.world.Sources.At(slot); i < mostHeldAnnounced && source != nil {
			s.announceSource(slot, source.UID, true, v1alpha1.ReasonLimitExceeded, texts[slot])
		}
	}
}
