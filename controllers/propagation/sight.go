package propagation

import (
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// What the contents keep of narrow kinds, which are watched only where the operator's RBAC allows; see Kind.isNarrow. Sight says whether the
// operator can see the objects of such a kind in a namespace. propagate.Everywhere stands for the whole cluster in place of a namespace.
// The methods of tables with the same names say more.

func setSight(w *propagate.World, o origin, namespace string, now propagate.Sight) []key {
	gk := o.kind.GroupKind()
	w.Sights.Set(gk, namespace, o.bringsSources(), o.bringsCopies(), now)
	if now != propagate.Seen || !w.Synced(gk) {
		return nil
	}
	keys := []key{}
	for name := range concerned(w.Forest, o, namespace) {
		keys = append(keys, namespaceKey(name))
	}
	if !o.bringsSources() {
		return keys
	}
	for _, slot := range w.OriginsIn(gk, namespace) {
		w.SetLoss(slot, propagate.Unverified)
		keys = append(keys, sourceKey(slot))
	}
	return keys
}

// concerned are the namespaces of the forest in which plans depend on what is seen in namespace, or everywhere.
func concerned(f *forest.Snapshot, o origin, namespace string) iter.Seq[string] {
	if namespace == propagate.Everywhere {
		return f.All()
	}
	return func(yield func(string) bool) {
		if !yield(namespace) || !o.bringsSources() {
			return
		}
		f.Below(namespace)(yield)
	}
}

func (c *contents) replaceIn(o origin, namespace, resourceVersion string, objects []*metav1.PartialObjectMetadata) effects {
	w := c.world
	return c.replace(o, objects, func() (sources, copies []propagate.Slot) {
		sources, copies = w.KindIn(o.kind.GroupKind(), namespace)
		isOlder := func(known string) bool { return !view.Newer(known, resourceVersion) }
		sources = slices.DeleteFunc(sources, func(slot propagate.Slot) bool { return !isOlder(w.Sources.At(slot).ResourceVersion) })
		copies = slices.DeleteFunc(copies, func(slot propagate.Slot) bool { return !isOlder(w.Copies.At(slot).ResourceVersion) })
		return sources, copies
	})
}

func (c *contents) forgetElsewhere(o origin, isFollowed func(namespace string) bool) {
	sources, copies := c.world.KindIn(o.kind.GroupKind(), propagate.Everywhere)
	for _, slot := range sources {
		if o.bringsSources() && !isFollowed(slot.Namespace) {
			c.dropSource(slot)
		}
	}
	for _, slot := range copies {
		if o.bringsCopies() && !isFollowed(slot.Namespace) {
			c.dropCopy(slot)
			delete(c.lastSeen, c.streamOf(slot.Kind, slot.Namespace))
		}
	}
}

func (c *contents) forgetNamespace(o origin, namespace string) effects {
	w, gk := c.world, o.kind.GroupKind()
	w.Sights.Set(gk, namespace, o.bringsSources(), o.bringsCopies(), propagate.Awaited)
	all := c.replace(o, nil, func() (sources, copies []propagate.Slot) { return w.KindIn(gk, namespace) })
	if o.bringsCopies() {
		delete(c.lastSeen, c.streamOf(gk, namespace))
	}
	if w.Forest.Namespace(namespace) != nil {
		all.keys = nil
	}
	return all
}
