package watchset

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contents are the objects that a part holds. The Set's lock guards the fields; the store has a lock of its own, and is
// written under the Set's lock or, event by event, by the part's run alone.
type contents struct {
	store cache.Indexer
	count atomic.Int64 // how many objects the store holds
	// known holds, by namespace/name, the objects that each feed got from other parts of an Auto lease before this part
	// took their place.
	known map[*feed]map[string]client.Object
}

// replaceReadStore makes store the one that the part's readers read. The caller holds the Set's lock.
func (c *contents) replaceReadStore(store cache.Indexer) {
	c.store = store
	c.count.Store(int64(len(store.ListKeys())))
}

// applyToStore puts one event of a watch into the store, and returns the difference that it makes; false if it makes
// none. The caller holds the Set's lock for reading.
func (c *contents) applyToStore(object client.Object, what change) (difference, bool) {
	d := difference{key: objectKey(object)}
	if old, known, _ := c.store.GetByKey(d.key); known {
		d.before = old.(client.Object)
	}
	if what == removed {
		_ = c.store.Delete(object)
		if d.before == nil {
			return d, false
		}
		c.count.Add(-1)
		d.before = object // its last state
		return d, true
	}
	d.now = object
	_ = c.store.Add(object)
	if d.before == nil {
		c.count.Add(1)
		return d, true
	}
	return d, !isSameVersion(d.before, d.now)
}

// findStoredObject returns the object with this key: namespace/name, or only the name if it is cluster-scoped; nil if
// there is none.
func (c *contents) findStoredObject(key string) client.Object {
	if obj, ok, _ := c.store.GetByKey(key); ok {
		return obj.(client.Object)
	}
	return nil
}

// selectStoredObjects returns the objects of a namespace, "" for all, that match sel. indexed reports whether the store
// has an index by namespace.
func (c *contents) selectStoredObjects(namespace string, sel labels.Selector, indexed bool) []client.Object {
	objs := c.store.List()
	if namespace != "" && indexed {
		objs, _ = c.store.ByIndex(cache.NamespaceIndex, namespace)
	}
	found := make([]client.Object, 0, len(objs))
	for _, obj := range objs {
		object := obj.(client.Object)
		if namespace != "" && object.GetNamespace() != namespace {
			continue
		}
		if sel == nil || sel.Matches(labels.Set(object.GetLabels())) {
			found = append(found, object)
		}
	}
	return found
}

// objectsByName returns the objects by namespace/name.
func (c *contents) objectsByName() map[string]client.Object { return storedObjects(c.store) }

// recordAlreadySent records the objects of a namespace that a feed got from another part. told holds all objects that
// the feed got from that part. So this part's first list passes on only differences.
func (c *contents) recordAlreadySent(f *feed, told map[string]client.Object, namespace string) {
	for key, object := range told {
		if object.GetNamespace() != namespace {
			continue
		}
		if c.known == nil {
			c.known = map[*feed]map[string]client.Object{}
		}
		if c.known[f] == nil {
			c.known[f] = map[string]client.Object{}
		}
		c.known[f][key] = object
	}
}

func storedObjects(store cache.Indexer) map[string]client.Object {
	all := map[string]client.Object{}
	for _, obj := range store.List() {
		object := obj.(client.Object)
		all[objectKey(object)] = object
	}
	return all
}

func objectKey(object client.Object) string {
	if ns := object.GetNamespace(); ns != "" {
		return ns + "/" + object.GetName()
	}
	return object.GetName()
}
