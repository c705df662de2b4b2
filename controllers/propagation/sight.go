package propagation

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// The methods of this file answer for narrow kinds, which are watched only where the operator's RBAC allows; see Kind.isNarrow. Sight says
// whether the operator can see the objects of such a kind in a namespace. propagate.Everywhere stands for the whole cluster in place of a
// namespace.

// setNarrow marks a kind as narrow; the kind is not seen anywhere yet.
func (t *tables) setNarrow(gk schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.Sights.SetNarrow(gk)
}

// setSight notes what a watch shows of namespace. When namespace has come into sight, setSight returns the keys of all namespaces and sources
// whose plans were made without it; for a kind that is not synced it returns nil.
func (t *tables) setSight(o origin, namespace string, now propagate.Sight) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	world, gk := t.in.world, o.kind.GroupKind()
	world.Sights.Set(gk, namespace, o.bringsSources(), o.bringsCopies(), now)
	if now != propagate.Seen || !world.Synced(gk) {
		return nil
	}
	keys := []key{}
	for concerned := range t.in.concerned(o, namespace) {
		keys = append(keys, namespaceKey(concerned))
	}
	if !o.bringsSources() {
		return keys
	}
	for _, slot := range world.OriginsIn(gk, namespace) {
		world.SetLoss(slot, propagate.Unverified)
		keys = append(keys, sourceKey(slot))
	}
	return keys
}

// concerned are the namespaces in which plans depend on what is seen in namespace, or everywhere.
func (c *contents) concerned(o origin, namespace string) iter.Seq[string] {
	if namespace == propagate.Everywhere {
		return c.world.Forest.All()
	}
	return func(yield func(string) bool) {
		if !yield(namespace) || !o.bringsSources() {
			return
		}
		c.world.Forest.Below(namespace)(yield)
	}
}

// replaceObjectsIn takes in a complete list: of what a watch brings from namespace, exactly these objects existed at resourceVersion. Known
// objects with a newer resourceVersion, which another watch has shown, stay as they are.
func (t *tables) replaceObjectsIn(o origin, namespace, resourceVersion string, objects []*metav1.PartialObjectMetadata) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.replace(o, objects, func() (sources, copies []propagate.Slot) {
		sources, copies = t.in.world.KindIn(o.kind.GroupKind(), namespace)
		isOlder := func(known string) bool { return !view.Newer(known, resourceVersion) }
		sources = slices.DeleteFunc(sources, func(slot propagate.Slot) bool { return !isOlder(t.in.world.Sources.At(slot).ResourceVersion) })
		copies = slices.DeleteFunc(copies, func(slot propagate.Slot) bool { return !isOlder(t.in.world.Copies.At(slot).ResourceVersion) })
		return sources, copies
	})
}

// forgetElsewhere is called when a watch of the whole cluster has ended. It drops the objects from namespaces that are not followed: no other
// watch would show when such an object goes. Nothing is queued, because the objects may still exist.
func (t *tables) forgetElsewhere(o origin, isFollowed func(namespace string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sources, copies := t.in.world.KindIn(o.kind.GroupKind(), propagate.Everywhere)
	for _, slot := range sources {
		if o.bringsSources() && !isFollowed(slot.Namespace) {
			t.in.dropSource(slot)
		}
	}
	for _, slot := range copies {
		if o.bringsCopies() && !isFollowed(slot.Namespace) {
			t.in.dropCopy(slot)
			delete(t.in.lastSeen, t.in.streamOf(slot.Kind, slot.Namespace))
		}
	}
}

// forgetNamespace drops what a watch has brought from a namespace that the watch no longer shows. Its effects hold keys only where the
// namespace itself is gone; otherwise the dropped objects may still exist.
func (t *tables) forgetNamespace(o origin, namespace string) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	world, gk := t.in.world, o.kind.GroupKind()
	world.Sights.Set(gk, namespace, o.bringsSources(), o.bringsCopies(), propagate.Awaited)
	all := t.in.replace(o, nil, func() (sources, copies []propagate.Slot) { return world.KindIn(gk, namespace) })
	if o.bringsCopies() {
		delete(t.in.lastSeen, t.in.streamOf(gk, namespace))
	}
	if world.Forest.Namespace(namespace) != nil {
		all.keys = nil
	}
	return all
}

// seesSource says whether the operator can see the place of the source at slot: a source that is missing there doesn't exist.
func (t *tables) seesSource(slot propagate.Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.SeesSource(slot)
}

// awaitsSight says whether rails of namespace may exist that were not listed yet.
func (t *tables) awaitsSight(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.AwaitsSight(namespace)
}

// holdsCopies says whether copies stand in namespace that go when it leaves the forest.
func (t *tables) holdsCopies(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Copies.HasUpdatedIn(namespace)
}
