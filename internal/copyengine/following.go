package copyengine

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Narrow kinds are watched in the namespaces of the forest, halted ones included, and in namespaces that have left the forest and hold
// copies, or may hold some. This file decides which namespaces these are, and what a change of what the operator sees there means.

func (FollowDue) applyTo(s *State) {
	wanted := s.findFollowed()
	if s.followed != nil && maps.Equal(s.followed, wanted) {
		return
	}
	s.followed = wanted
	s.emitOutput(Follow{Namespaces: wanted})
	for _, k := range s.kinds {
		for _, w := range k.watches {
			if k.IsNarrow() {
				s.settleWatch(k, w)
			}
		}
	}
}

// findFollowed returns the namespaces in which narrow kinds are to be watched, with their UIDs.
func (s *State) findFollowed() map[string]types.UID {
	wanted := map[string]types.UID{}
	for name := range s.world.Forest.All() {
		if s.isFollowed(name) {
			wanted[name] = types.UID(s.world.Forest.Namespace(name).UID)
		}
	}
	return wanted
}

func (s *State) isFollowed(namespace string) bool {
	f := s.world.Forest
	n := f.Namespace(namespace)
	return n != nil && (isInForest(f, namespace) || s.hasDeparted(namespace, types.UID(n.UID)) || s.world.Copies.HasUpdatedIn(namespace))
}

// hasDeparted reports whether namespace has left the forest and may hold copies that no watch has shown. Once the operator knows all copies
// there, hasDeparted forgets the namespace.
func (s *State) hasDeparted(namespace string, uid types.UID) bool {
	if uid == "" || s.departed[namespace] != uid {
		return false
	}
	if s.seesAllCopies(namespace) {
		delete(s.departed, namespace)
		return false
	}
	return true
}

// recordDeparted records which namespaces have left the forest and still have the annotation ancestry. The first change after a start names
// all namespaces, and comes before the operator removes that annotation.
func (s *State) recordDeparted(c ForestChanged) {
	for _, name := range c.Namespaces {
		n := c.New.Namespace(name)
		if n == nil {
			delete(s.departed, name)
		} else if n.FormerRoot() != "" && !isInForest(c.New, name) {
			s.departed[name] = types.UID(n.UID)
		}
	}
}

func isInForest(f *forest.Snapshot, namespace string) bool {
	place := f.Place(namespace)
	return place.Kind != forest.None || place.Halted()
}

// HoldsCopies reports whether namespace holds copies that the operator deletes when namespace leaves the forest, or may hold such copies
// without the operator seeing them.
func (s *State) HoldsCopies(namespace string) bool {
	_, departed := s.departed[namespace]
	return departed || s.world.Copies.HasUpdatedIn(namespace)
}

// setSight records whether a watch shows the objects of a kind in namespace. The kind is narrow: it is watched only where RBAC allows.
// When the objects of namespace become visible, setSight queues the namespaces and sources that were planned without them.
func (s *State) setSight(watch Watch, namespace string, now copies.Sight) {
	w := s.world
	w.Sights.Set(watch.Kind, namespace, watch.Role.showsSources(), watch.Role.showsCopies(), now)
	if now != copies.Seen || !w.Synced(watch.Kind) {
		return
	}
	for name := range s.findConcerned(watch.Role, namespace) {
		s.queueKeys(namespaceKey(name))
	}
	if !watch.Role.showsSources() {
		return
	}
	for _, slot := range w.OriginsIn(watch.Kind, namespace) {
		w.SetLoss(slot, copies.Unverified)
		s.queueKeys(sourceTask(slot))
	}
}

// findConcerned yields the namespaces of the forest in which plans depend on what is seen in namespace, or Everywhere.
func (s *State) findConcerned(role Role, namespace string) iter.Seq[string] {
	if namespace == copies.Everywhere {
		return s.world.Forest.All()
	}
	return func(yield func(string) bool) {
		if !yield(namespace) || !role.showsSources() {
			return
		}
		s.world.Forest.Below(namespace)(yield)
	}
}

// forgetElsewhere is called when a watch of the whole cluster has ended. It drops the objects from namespaces that are not followed,
// because no other watch would show when such an object goes. No slot or source is queued, because the objects may still exist.
func (s *State) forgetElsewhere(watch Watch) {
	sources, copied := s.world.KindIn(watch.Kind, copies.Everywhere)
	followed := s.findFollowed()
	isElsewhere := func(slot copies.Slot) bool { _, is := followed[slot.Namespace]; return !is }
	before := s.out.snapshot()
	for _, slot := range sources {
		if watch.Role.showsSources() && isElsewhere(slot) {
			s.dropSource(slot)
		}
	}
	for _, slot := range copied {
		if watch.Role.showsCopies() && isElsewhere(slot) {
			s.dropCopy(slot)
			delete(s.newest, s.watchedPlaceOf(slot.Kind, slot.Namespace))
		}
	}
	s.out.dropKeysSince(before)
}

// forgetNamespace drops what a watch has shown of a namespace that it does not show any more. Slots and sources are queued only if the
// namespace itself is gone: otherwise the dropped objects may still exist.
func (s *State) forgetNamespace(watch Watch, namespace string) {
	s.world.Sights.Set(watch.Kind, namespace, watch.Role.showsSources(), watch.Role.showsCopies(), copies.Awaited)
	sources, copied := s.world.KindIn(watch.Kind, namespace)
	before := s.out.snapshot()
	s.dropMissing(watch, sources, copied, nil)
	if watch.Role.showsCopies() {
		delete(s.newest, s.watchedPlaceOf(watch.Kind, namespace))
	}
	if s.world.Forest.Namespace(namespace) != nil {
		s.out.dropKeysSince(before)
	}
}

// snapshot returns how many keys are queued; dropKeysSince takes back the keys that were queued since, except keys of namespaces: these
// have waited for the removal of what was dropped, and nothing else queues them.
func (c *collector) snapshot() int { return len(c.keys) }

func (c *collector) dropKeysSince(before int) {
	kept := c.keys[:before]
	for _, key := range c.keys[before:] {
		if key.Task == LookAtNamespace {
			kept = append(kept, key)
		} else {
			delete(c.queued, key)
		}
	}
	c.keys = kept
}
