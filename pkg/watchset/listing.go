package watchset

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listing is all objects of a part at one resourceVersion. Its store and differences are made without the Set's lock,
// because the readers of all parts wait for that lock.
type listing struct {
	objects         []client.Object // set for the Set's own parts and parts with a Sink, which have no store
	resourceVersion string
	store           cache.Indexer
	differences     []difference // between the part's store and this one
}

// difference is an object that was created (before is nil), changed, or deleted (now is nil).
type difference struct {
	key         string
	before, now client.Object
}

// newListing indexes objects and compares them with the part's store. Only the part's own run calls it, and nothing
// else changes that store while the run goes on.
func newListing(p *part, objects []client.Object, resourceVersion string) *listing {
	if p.selection.isWatchedForSet() || p.selection.key.sink != nil {
		return &listing{objects: objects, resourceVersion: resourceVersion}
	}
	var before cache.Indexer
	p.set.lock.readUnderLock(func() { before = p.contents.store })
	listed := &listing{resourceVersion: resourceVersion, store: p.selection.newObjectStore(objects)}
	listed.differences = compareStores(storedObjects(before), listed.store)
	return listed
}

// compareStores returns the differences between before, by namespace/name, and now.
func compareStores(before map[string]client.Object, now cache.Indexer) []difference {
	var found []difference
	for _, obj := range now.List() {
		object := obj.(client.Object)
		key := objectKey(object)
		if old := before[key]; old == nil || !isSameVersion(old, object) {
			found = append(found, difference{key, old, object})
		}
	}
	for key, old := range before {
		if _, stays, _ := now.GetByKey(key); !stays {
			found = append(found, difference{key, old, nil})
		}
	}
	return found
}

// replaceByListing makes a listing the part's store and queues the differences for the feeds; an observer or a Sink
// gets the objects instead. The caller holds the Set's lock.
func (p *part) replaceByListing(all *listing) {
	if p.selection.isWatchedForSet() {
		p.selection.observer(initial, all.objects...)
		return
	}
	if p.selection.key.sink != nil {
		p.selection.key.sink.Replace(p.selection.key.namespace, all.resourceVersion, all.objects)
		return
	}
	before := p.contents.store
	newer := all.newerElsewhere(p)
	for _, object := range newer {
		_ = all.store.Add(object)
	}
	p.contents.replaceReadStore(all.store)
	for f := range p.feedsOfPart() {
		if more := p.knownElsewhere(f); len(more) > 0 || len(newer) > 0 {
			known := storedObjects(before)
			maps.Copy(known, more)
			f.queueDifferences(p, compareStores(known, p.contents.store))
			continue
		}
		f.queueDifferences(p, all.differences)
	}
	p.contents.known = nil
}

// knownElsewhere returns, by namespace/name, the objects that a feed got from the parts of namespaces whose place this
// part takes in Auto leases.
func (p *part) knownElsewhere(f *feed) map[string]client.Object {
	all := maps.Clone(p.contents.known[f])
	if all == nil {
		all = map[string]client.Object{}
	}
	for l, q := range p.demand.partsStandingInFor(p) {
		if l.owner.Controller == f.controller {
			maps.Copy(all, q.contents.known[f])
			maps.Copy(all, q.contents.objectsByName())
		}
	}
	return all
}

// newerElsewhere returns the objects that parts of namespaces hold in Auto leases at a later resourceVersion than this
// listing of p has. Without them, readers that change to p would miss these objects until the watch brings them.
func (l *listing) newerElsewhere(p *part) []client.Object {
	var newer []client.Object
	for _, q := range p.demand.partsStandingInFor(p) {
		for _, object := range q.contents.objectsByName() {
			if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), l.resourceVersion); err == nil && order > 0 {
				newer = append(newer, object)
			}
		}
	}
	return newer
}
