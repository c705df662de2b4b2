package propagation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/propagate"
)

// What the tables know of kinds that are watched namespace by namespace.

// setNarrow says that a kind is watched namespace by namespace, and not seen anywhere yet.
func (t *tables) setNarrow(gk schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.SetNarrow(gk)
}

// setSight says what a watch shows of namespace. Where something has come into sight, the keys are those of all that was planned
// without it.
func (t *tables) setSight(o origin, namespace string, now propagate.Sight) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	world, gk := t.in.world, o.kind.GroupKind()
	world.SetSight(gk, namespace, o.bringsSources(), o.bringsCopies(), now)
	if now != propagate.Seen || !world.Synced(gk) {
		return nil
	}
	keys := []key{namespaceKey(namespace)}
	if !o.bringsSources() {
		return keys
	}
	for _, slot := range world.OriginsIn(gk, namespace) {
		world.SetLoss(slot, propagate.Unverified)
		keys = append(keys, sourceKey(slot))
	}
	for below := range world.Forest.Below(namespace) {
		keys = append(keys, namespaceKey(below))
	}
	return keys
}

// replaceObjectsIn says that exactly these objects exist of what a watch brings from namespace.
func (t *tables) replaceObjectsIn(o origin, namespace string, objects []*metav1.PartialObjectMetadata) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.replace(o, objects, func() (sources, copies []propagate.Slot) {
		return t.in.world.KindIn(o.kind.GroupKind(), namespace)
	})
}

// forgetNamespace drops what a watch has brought from a namespace that it shows no longer. Only where the namespace itself is gone
// does absence mean anything.
func (t *tables) forgetNamespace(o origin, namespace string) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	world, gk := t.in.world, o.kind.GroupKind()
	world.SetSight(gk, namespace, o.bringsSources(), o.bringsCopies(), propagate.Awaited)
	all := t.in.replace(o, nil, func() (sources, copies []propagate.Slot) { return world.KindIn(gk, namespace) })
	if o.bringsCopies() {
		delete(t.in.lastSeen, t.in.streamOf(gk, namespace))
	}
	if world.Forest.Namespace(namespace) != nil {
		all.keys = nil
	}
	return all
}

// seesSource says whether the source at slot is in sight, or its absence.
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
	return t.in.world.HoldsCopies(namespace)
}
