package copyengine

import (
	"maps"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// removals hold back writes in a namespace until the copies that a move takes away from it are deleted.
type removals struct {
	*core
	barriers   map[string]*removalBarrier // by namespace
	unanswered map[string]int             // by namespace: DELETEs without an answer yet
}

// removalBarrier delays writes in one namespace.
type removalBarrier struct {
	since    time.Time
	reported bool // the barrier has lasted for Timing.Stuck, and its namespace was reported
}

// waitsForRemoval reports whether an action is held back because copies must be deleted before.
func waitsForRemoval(action copies.Action) bool {
	return action.Reason == v1alpha1.ReasonWaitingForRemoval
}

// holdsBack reports whether an action at slot must wait for removals in its namespace, and if so raises a barrier
// there. An action waits because its plan says so, or because a DELETE in the namespace is not answered yet, even if a
// watch has already shown that the copy is gone.
func (r *removals) holdsBack(slot copies.Slot, action copies.Action) bool {
	waits := waitsForRemoval(action) || (action.Verb == copies.Create || action.Verb == copies.Update) &&
		r.unanswered[slot.Namespace] > 0
	if waits && r.barriers[slot.Namespace] == nil {
		r.barriers[slot.Namespace] = &removalBarrier{since: r.now}
	}
	return waits
}

// isWaiting reports whether a namespace waits for removals, isStuck whether it has waited for Timing.Stuck.
func (r *removals) isWaiting(namespace string) bool { return r.barriers[namespace] != nil }

func (r *removals) isStuck(namespace string) bool {
	barrier := r.barriers[namespace]
	return barrier != nil && barrier.reported
}

// findWaiting returns the namespaces that wait for removals.
func (r *removals) findWaiting() []string { return slices.Collect(maps.Keys(r.barriers)) }

// beginRemoval is called before a DELETE in namespace.
func (r *removals) beginRemoval(namespace string) { r.unanswered[namespace]++ }

// endBarrier takes the barrier of a namespace away, if it has one, and queues the namespace.
func (r *removals) endBarrier(namespace string) {
	if r.dropBarrier(namespace) {
		r.queueKeys(namespaceKey(namespace))
	}
}

// dropBarrier takes the barrier of a namespace away, and reports whether there was one.
func (r *removals) dropBarrier(namespace string) bool {
	barrier := r.barriers[namespace]
	delete(r.barriers, namespace)
	// What was reported as stuck must be taken back.
	if barrier != nil && barrier.reported {
		r.reportNamespaces(namespace)
	}
	return barrier != nil
}

// endRemoval is called when a DELETE in namespace was answered.
func (r *removals) endRemoval(namespace string, err error) {
	r.unanswered[namespace]--
	// Only the last answer lets writes begin: until then a deleted copy may still grant or allow something (PROP-V1).
	if r.unanswered[namespace] > 0 {
		return
	}
	delete(r.unanswered, namespace)
	switch {
	case err == nil:
		r.endBarrier(namespace)
	case r.barriers[namespace] != nil:
		r.queueIndependent(namespace)
	}
}

// queueIndependent queues the slots in namespace that need not wait for a removal that has failed. The removal is tried
// again by itself.
func (r *removals) queueIndependent(namespace string) {
	waits := false
	for _, slot := range r.world.SlotsIn(namespace) {
		switch action := r.world.Plan(slot); {
		case waitsForRemoval(action):
			waits = true
		case action.Verb == copies.Create || action.Verb == copies.Update:
			r.queueKeys(slotKey(slot))
		}
	}
	if !waits {
		r.dropBarrier(namespace)
	}
}

// reportStuck reports the namespaces that have waited for Timing.Stuck without the removal of a copy.
func (r *removals) reportStuck() {
	for namespace, barrier := range r.barriers {
		if !barrier.reported && r.now.Sub(barrier.since) >= r.settings.Timing.Stuck {
			barrier.reported = true
			r.reportNamespaces(namespace)
		}
	}
}

// findLeaving returns the copies in namespace that are to be removed, or are being removed.
func (r *removals) findLeaving(namespace string) map[copies.Slot]*copies.Copy {
	all := map[copies.Slot]*copies.Copy{}
	for _, slot := range r.world.SlotsIn(namespace) {
		c := r.world.Copies.At(slot)
		if c != nil && c.Ours && (c.Terminating || r.world.Plan(slot).Verb == copies.Delete) {
			all[slot] = c
		}
	}
	return all
}
