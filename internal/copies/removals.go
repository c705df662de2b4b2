package copies

import (
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// removals hold back writes in a namespace until the copies that a move takes away from it are deleted.
type removals struct {
	barriers   map[string]*removalBarrier // by namespace
	unanswered map[string]int             // by namespace: DELETEs without an answer yet
}

// removalBarrier delays writes in one namespace.
type removalBarrier struct {
	since    time.Time
	reported bool // the barrier has lasted for Timing.Stuck, and its namespace was reported
}

func newRemovals() removals {
	return removals{barriers: map[string]*removalBarrier{}, unanswered: map[string]int{}}
}

// waitsForRemoval reports whether an action is held back because copies must be deleted before.
func waitsForRemoval(action Action) bool { return action.Reason == v1alpha1.ReasonWaitingForRemoval }

// waitsForRemovals reports whether an action at slot must wait for removals in its namespace, and if so raises a barrier there. An action
// waits because its plan says so, or because a DELETE in the namespace is not answered yet, even if a watch has already shown that the copy
// is gone.
func (s *State) waitsForRemovals(slot Slot, action Action) bool {
	waits := waitsForRemoval(action) || (action.Verb == Create || action.Verb == Update) && s.removals.unanswered[slot.Namespace] > 0
	if waits && s.removals.barriers[slot.Namespace] == nil {
		s.removals.barriers[slot.Namespace] = &removalBarrier{since: s.now}
	}
	return waits
}

// endBarrier takes the barrier of a namespace away, if it has one, and queues the namespace.
func (s *State) endBarrier(namespace string) {
	if s.dropBarrier(namespace) {
		s.queue(namespaceKey(namespace))
	}
}

// dropBarrier takes the barrier of a namespace away, and reports whether there was one.
func (s *State) dropBarrier(namespace string) bool {
	barrier := s.removals.barriers[namespace]
	delete(s.removals.barriers, namespace)
	if barrier != nil && barrier.reported {
		s.report(namespace)
	}
	return barrier != nil
}

// endRemoval is called when a DELETE in namespace was answered.
func (s *State) endRemoval(namespace string, err error) {
	s.removals.unanswered[namespace]--
	if s.removals.unanswered[namespace] > 0 {
		return
	}
	delete(s.removals.unanswered, namespace)
	switch {
	case err == nil:
		s.endBarrier(namespace)
	case s.removals.barriers[namespace] != nil:
		s.queueIndependent(namespace)
	}
}

// queueIndependent queues the slots in namespace that need not wait for a removal that has failed. The removal is tried again by itself.
func (s *State) queueIndependent(namespace string) {
	waits := false
	for _, slot := range s.world.SlotsIn(namespace) {
		switch action := s.world.Plan(slot); {
		case waitsForRemoval(action):
			waits = true
		case action.Verb == Create || action.Verb == Update:
			s.queue(slotKey(slot))
		}
	}
	if !waits {
		s.dropBarrier(namespace)
	}
}

// reportStuck reports the namespaces in which no copy was removed for as long as Timing.Stuck says.
func (s *State) reportStuck() {
	for namespace, barrier := range s.removals.barriers {
		if !barrier.reported && s.now.Sub(barrier.since) >= s.settings.Timing.Stuck {
			barrier.reported = true
			s.report(namespace)
		}
	}
}

// findLeaving returns the copies in namespace that are to be removed, or are being removed.
func (s *State) findLeaving(namespace string) map[Slot]*Copy {
	all := map[Slot]*Copy{}
	for _, slot := range s.world.SlotsIn(namespace) {
		c := s.world.Copies.At(slot)
		if c != nil && c.Ours && (c.Terminating || s.world.Plan(slot).Verb == Delete) {
			all[slot] = c
		}
	}
	return all
}

// NewestIn returns the highest resourceVersion of a copy in namespace; "" if there is none.
func (w *World) NewestIn(namespace string) string {
	newest := ""
	for _, slot := range w.SlotsIn(namespace) {
		if c := w.Copies.At(slot); c != nil && (newest == "" || forest.IsNewer(c.ResourceVersion, newest)) {
			newest = c.ResourceVersion
		}
	}
	return newest
}
