package propagation

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// limitsPause is how long a look at the limits of a tree is delayed, so that one look serves all slots of the tree that are found to be held
// back one after the other.
const limitsPause = 100 * time.Millisecond

// mostHeldAnnounced bounds the Events of one look at the limits of a tree: a tenant may have thousands of sources.
const mostHeldAnnounced = 5

// limits queues the sources for which the limits of their trees leave room again, and sends Events about sources that the limits hold back.
type limits struct {
	tables   *tables
	facts    facts
	kinds    *kinds
	queue    *queue
	troubles *troubles
	notices  *notices
}

// noteHeld queues a look at the limits of the tree around the source at slot, because these limits hold the source back.
func (l *limits) noteHeld(slot propagate.Slot) {
	l.queue.AddAfter(tenantKey(l.facts.forest().RootOf(slot.Namespace)), limitsPause)
}

// holdBack says whether a new copy in a tree with limits must wait because not all kinds are listed yet: copies that were not listed would
// not be counted. If so, the slot is queued again.
func (l *limits) holdBack(slot propagate.Slot, action propagate.Action) bool {
	if action.Verb != propagate.Create || !l.facts.counts(slot, action.Source) || !l.kinds.areSyncing() {
		return false
	}
	l.queue.AddAfter(slotKey(slot), syncLook)
	return true
}

// noteWritten queues a look at the limits of the tree around slot if they hold something back: the copy that was written may be smaller than
// the one that it replaced, and leave room.
func (l *limits) noteWritten(slot propagate.Slot) {
	if l.facts.holdsBack(slot.Namespace) {
		l.queue.AddAfter(tenantKey(l.facts.forest().RootOf(slot.Namespace)), limitsPause)
	}
}

// review looks again at what the limits of root's tree hold back: it queues the sources that are released, and sends Events about sources
// that are newly held back.
func (l *limits) review(root string) {
	released, held, troubles := l.tables.reallot(root)
	changed := map[string]bool{}
	for _, slot := range released {
		l.queue.Add(sourceKey(slot))
		changed[slot.Namespace] = true
	}
	for i, slot := range held {
		changed[slot.Namespace] = true
		if source := l.facts.source(slot); i < mostHeldAnnounced && source != nil {
			l.notices.tellSource(slot, source.UID, corev1.EventTypeWarning, v1alpha1.ReasonLimitExceeded, troubles[slot].Text)
		}
	}
	l.troubles.tell(slices.Collect(maps.Keys(changed))...) // tell also names the namespaces above these, up to the root
}

// What the contents know of limits.

func reallot(a *propagate.Allotter, root string) (released, held []propagate.Slot, troubles map[propagate.Slot]propagate.Trouble) {
	released, held = a.Reallot(root)
	troubles = map[propagate.Slot]propagate.Trouble{}
	if len(held) > 0 {
		for _, trouble := range a.HeldAround(root) {
			troubles[trouble.Slot] = trouble
		}
	}
	return released, held, troubles
}

// limitsAround is the key of the tree around namespace, if its limits hold something back.
func limitsAround(w *propagate.World, namespace string) []key {
	if !w.Limits.HoldsBack(namespace) {
		return nil
	}
	return []key{tenantKey(w.Forest.RootOf(namespace))}
}
