package copyengine

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Narrow kinds are watched in the namespaces of the forest, halted ones included, and in namespaces that have left the
// forest and hold copies, or may hold some. This file decides which namespaces these are, and what a change of what the
// operator sees there means.

// followNamespaces asks for watches in other namespaces, if narrow kinds are to be watched elsewhere than before.
func (ws *watches) followNamespaces() {
	wanted := ws.findFollowed()
	if ws.followed != nil && maps.Equal(ws.followed, wanted) {
		return
	}
	ws.followed = wanted
	ws.emitOutput(Follow{Namespaces: wanted})
	for _, k := range ws.kinds {
		for _, w := range k.watches {
			if k.IsNarrow() {
				ws.setNarrowState(k, w)
			}
		}
	}
}

// findFollowed returns the namespaces in which narrow kinds are to be watched, with their UIDs.
func (ws *watches) findFollowed() map[string]types.UID {
	wanted := map[string]types.UID{}
	for name := range ws.world.Forest.All() {
		if ws.isFollowed(name) {
			wanted[name] = types.UID(ws.world.Forest.Namespace(name).UID)
		}
	}
	return wanted
}

func (ws *watches) isFollowed(namespace string) bool {
	f := ws.world.Forest
	n := f.Namespace(namespace)
	return n != nil && (isInForest(f, namespace) || ws.hasDeparted(namespace, types.UID(n.UID)) || ws.writing[namespace] > 0 ||
		ws.world.Copies.HasUpdatedIn(namespace))
}

// beginWrite and endWrite count the writes under way in a namespace. A namespace that leaves the forest while a POST is
// under way is followed until its answer is known, so that the copy can be deleted again.
func (ws *watches) beginWrite(namespace string) { ws.writing[namespace]++ }

func (ws *watches) endWrite(namespace string) {
	if ws.writing[namespace]--; ws.writing[namespace] > 0 {
		return
	}
	delete(ws.writing, namespace)
	if !isInForest(ws.world.Forest, namespace) {
		ws.emitOutput(FollowSoon{})
	}
}

// hasDeparted reports whether namespace has left the forest and may hold copies that no watch has shown. Once the
// operator knows all copies there, hasDeparted drops the namespace.
func (ws *watches) hasDeparted(namespace string, uid types.UID) bool {
	if uid == "" || ws.departed[namespace] != uid {
		return false
	}
	if ws.seesAllCopies(namespace) {
		delete(ws.departed, namespace)
		return false
	}
	return true
}

// hasDepartedAny reports whether any namespace may have departed.
func (ws *watches) hasDepartedAny() bool { return len(ws.departed) > 0 }

// recordDeparted records which namespaces have left the forest and still have the annotation ancestry. The first change
// after a start names all namespaces, and comes before the operator removes that annotation.
func (ws *watches) recordDeparted(c ForestChanged) {
	for _, name := range c.Namespaces {
		n := c.New.Namespace(name)
		if n == nil {
			delete(ws.departed, name)
		} else if n.FormerRoot() != "" && !isInForest(c.New, name) {
			ws.departed[name] = types.UID(n.UID)
		}
	}
}

func isInForest(f *forest.Snapshot, namespace string) bool {
	place := f.Place(namespace)
	return place.Kind != forest.None || place.Halted()
}

func (ws *watches) holdsCopies(namespace string) bool {
	_, departed := ws.departed[namespace]
	return departed || ws.writing[namespace] > 0 || ws.world.Copies.HasUpdatedIn(namespace)
}

// setSight records whether a watch shows the objects of a kind in namespace. The kind is narrow: it is watched only
// where RBAC allows. When the objects of namespace become visible, setSight queues the namespaces and sources that were
// planned without them.
func (ws *watches) setSight(watch Watch, namespace string, now copies.Sight) {
	w := ws.world
	w.Sights.Set(watch.Kind, namespace, watch.Role.showsSources(), watch.Role.showsCopies(), now)
	if now != copies.Seen || !w.Synced(watch.Kind) {
		return
	}
	for name := range ws.findConcerned(watch.Role, namespace) {
		ws.queueKeys(namespaceKey(name))
	}
	if !watch.Role.showsSources() {
		return
	}
	for _, slot := range w.OriginsIn(watch.Kind, namespace) {
		// While the namespace was unseen, nothing looked for its missing sources.
		w.SetLoss(slot, copies.Unverified)
		ws.queueKeys(sourceTask(slot))
	}
}

// findConcerned yields the namespaces of the forest in which plans depend on what is seen in namespace, or Everywhere.
func (ws *watches) findConcerned(role Role, namespace string) iter.Seq[string] {
	if namespace == copies.Everywhere {
		return ws.world.Forest.All()
	}
	return func(yield func(string) bool) {
		if !yield(namespace) || !role.showsSources() {
			return
		}
		ws.world.Forest.Below(namespace)(yield)
	}
}
