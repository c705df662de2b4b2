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
	kinds    *kinds
	queue    *queue
	troubles *troubles
	notices  *notices
}

// noteHeld queues a look at the limits of the tree around the source at slot, because these limits hold the source back.
func (l *limits) noteHeld(slot propagate.Slot) {
	l.queue.AddAfter(tenantKey(l.tables.rootOf(slot.Namespace)), limitsPause)
}

// holdBack says whether a new copy in a tree with limits must wait because not all kinds are listed yet: copies that were not listed would
// not be counted. If so, the slot is queued again.
func (l *limits) holdBack(slot propagate.Slot, action propagate.Action) bool {
	if action.Verb != propagate.Create || !l.tables.counts(slot, action.Source) || !l.kinds.areSyncing() {
		return false
	}
	l.queue.AddAfter(slotKey(slot), syncLook)
	return true
}

// noteWritten queues a look at the limits of the tree around slot if they hold something back: the copy that was written may be smaller than
// the one that it replaced, and leave room.
func (l *limits) noteWritten(slot propagate.Slot) {
	if l.tables.holdsBack(slot.Namespace) {
		l.queue.AddAfter(tenantKey(l.tables.rootOf(slot.Namespace)), limitsPause)
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
		if source := l.tables.source(slot); i < mostHeldAnnounced && source != nil {
			l.notices.tellSource(slot, source.UID, corev1.EventTypeWarning, v1alpha1.ReasonLimitExceeded, troubles[slot].Text)
		}
	}
	l.troubles.tell(slices.Collect(maps.Keys(changed))...) // tell also names the namespaces above these, up to the root
}

// What the tables know of limits.

// counts says whether the tree around slot has limits that count the copies of the source at from.
func (t *tables) counts(slot, from propagate.Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	source := t.in.world.Sources.At(from)
	return source != nil && !source.Access && t.in.world.Limits.IsLimited(slot.Namespace)
}

// holdsBack says whether limits hold something back in the tree around namespace.
func (t *tables) holdsBack(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Limits.HoldsBack(namespace)
}

// rootOf is the root of the tree around namespace, or "".
func (t *tables) rootOf(namespace string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Forest.RootOf(namespace)
}

// reallot looks again at what the limits of the tree of root hold back; see propagate.Allotter.
func (t *tables) reallot(root string) (released, held []propagate.Slot, troubles map[propagate.Slot]propagate.Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	released, held = t.in.world.Limits.Reallot(root)
	troubles = map[propagate.Slot]propagate.Trouble{}
	if len(held) > 0 {
		for _, trouble := range t.in.world.Limits.HeldAround(root) {
			troubles[trouble.Slot] = trouble
		}
	}
	return released, held, troubles
}

// heldAround are the sources that limits hold back, of namespace or, where that is a root, of its tree.
func (t *tables) heldAround(namespace string) []propagate.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Limits.HeldAround(namespace)
}

// countHeld are the numbers of copies that limits hold back, by group and kind.
func (t *tables) countHeld() map[string]map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Limits.CountHeld()
}

// limitsAround is the key of the tree around namespace, if its limits hold something back.
func (c *contents) limitsAround(namespace string) []key {
	if !c.world.Limits.HoldsBack(namespace) {
		return nil
	}
	return []key{tenantKey(c.world.Forest.RootOf(namespace))}
}
