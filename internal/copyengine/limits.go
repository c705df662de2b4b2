package copyengine

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// mostHeldAnnounced bounds the Events of one look at the limits of a tree: a tenant may have thousands of sources.
const mostHeldAnnounced = 5

// limits hold back sources that the limits of a tree leave no room for.
type limits struct {
	*core
	events   *events
	measured *measured
	troubles *troubles
	watches  *watches
}

// recordHeld records that limits hold back the source of a slot, and queues a look at the limits of the source's tree.
func (l *limits) recordHeld(slot copies.Slot, action copies.Action) {
	l.world.Limits.NoteHeld(action.Source)
	l.queueAfter(limitsKey(l.world.Forest.RootOf(action.Source.Namespace)), limitsPause)
	l.measured.endSlot(slot)
	l.troubles.clearTrouble(slot, action)
}

// holdsBack reports whether a new copy in a tree with limits must wait because not all kinds are listed yet: copies
// that were not listed would not be counted. If so, the slot is queued again.
func (l *limits) holdsBack(slot copies.Slot, action copies.Action) bool {
	if action.Verb != copies.Create || !l.watches.areSyncing() || !copies.IsLimited(l.world.Forest, slot.Namespace) {
		return false
	}
	// Limits never hold back access copies, so neither does a count that is not complete.
	if source := l.world.Sources.At(action.Source); source == nil || source.Access {
		return false
	}
	l.queueAfter(slotKey(slot), syncRetry)
	return true
}

// reviewTree looks again at what the limits of root's tree hold back: it queues the sources that are released, and
// sends Events about sources that are newly held back.
func (l *limits) reviewTree(root string) {
	released, held := l.world.Limits.Reallot(root)
	for _, slot := range released {
		l.queueKeys(sourceTask(slot))
		l.reportNamespaces(slot.Namespace)
	}
	if len(held) == 0 {
		return
	}
	texts := map[copies.Slot]string{}
	for _, trouble := range l.world.Limits.HeldAround(root) {
		texts[trouble.Slot] = trouble.Text
	}
	for i, slot := range held {
		l.reportNamespaces(slot.Namespace)
		if source := l.world.Sources.At(slot); i < mostHeldAnnounced && source != nil {
			l.events.announceSource(slot, source.UID, true, v1alpha1.ReasonLimitExceeded, texts[slot])
		}
	}
}
