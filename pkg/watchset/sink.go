package watchset

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sink is the cache.ReflectorStore of a run; it writes into the part's store, or to the Sink of the request. The reflector calls it
// from one goroutine.
type sink struct{ run *run }

// Add implements cache.ReflectorStore, and so do Update, Delete, Resync and Replace.
func (s *sink) Add(obj any) error    { return s.put(obj, put) }
func (s *sink) Update(obj any) error { return s.put(obj, put) }
func (s *sink) Delete(obj any) error { return s.put(obj, removed) }
func (s *sink) Resync() error        { return nil }

func (s *sink) Replace(objs []any, resourceVersion string) error {
	p := s.run.part
	all := make([]client.Object, 0, len(objs))
	for _, obj := range objs {
		object, err := p.stored(obj)
		if err != nil {
			return err
		}
		all = append(all, object)
	}
	listed := p.newListing(all, resourceVersion)
	s.run.locked(func() {
		r := s.run
		r.freeSlot()
		if !r.open {
			r.staged = listed // readers get it when the watch is open
			return
		}
		r.fresh = true
		p.replaceAll(listed)
		r.synced()
	})
	return nil
}

// Transformer implements cache.TransformingStore. The reflector so transforms each of a watch's initial objects as it arrives, and
// never holds all of them untransformed.
func (s *sink) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		object, err := s.run.part.stored(obj)
		return stored{object}, err
	}
}

func (s *sink) put(obj any, c change) error {
	p := s.run.part
	object, err := p.stored(obj)
	if err != nil {
		return err
	}
	if p.isOwn() {
		s.run.locked(func() { p.observer(c, object) })
		return nil
	}
	p.set.lock.read(func() {
		switch {
		case s.run.over:
		case p.key.sink != nil:
			p.tellSink(object, c)
		default:
			p.applyEvent(object, c)
		}
	})
	return nil
}

// listing is all objects of a part at one resourceVersion. Its store and differences are made without the Set's lock, because the
// readers of all parts wait for that lock.
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

// newListing indexes objects and compares them with the part's store. Only the part's own run calls it, and nothing else changes
// that store while the run goes on.
func (p *part) newListing(objects []client.Object, resourceVersion string) *listing {
	if p.isOwn() || p.key.sink != nil {
		return &listing{objects: objects, resourceVersion: resourceVersion}
	}
	var before cache.Indexer
	p.set.lock.read(func() { before = p.store })
	listed := &listing{resourceVersion: resourceVersion, store: p.newStore(objects)}
	listed.differences = compareStores(storedObjects(before), listed.store)
	return listed
}

// compareStores returns the differences between before, by namespace/name, and now.
func compareStores(before map[string]client.Object, now cache.Indexer) []difference {
	var found []difference
	for _, obj := range now.List() {
		object := obj.(client.Object)
		key := objectKey(object)
		if old := before[key]; old == nil || !same(old, object) {
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

// change is what happened to an object.
type change int8

const (
	put change = iota
	removed
	initial // it was there when the watch began
)

// stored wraps an object that Transformer has transformed, so that it isn't transformed twice.
type stored struct{ client.Object }

// stored returns an object of the reflector as the part keeps it: decoded, and transformed unless the part has a Sink.
func (p *part) stored(obj any) (client.Object, error) {
	if done, ok := obj.(stored); ok {
		return done.Object, nil
	}
	object, err := p.decodeObject(obj.(runtime.Object))
	if err != nil {
		return nil, err
	}
	if p.isOwn() {
		return p.trim(object), nil
	}
	if p.key.sink != nil {
		return object, nil
	}
	if transform, ok := p.set.options.Transform[p.key.resource]; ok {
		return transform(object), nil
	}
	return DefaultTransform(object), nil
}

// applyEvent puts one event of a watch into the store and queues it for the feeds. The caller holds the Set's lock for reading.
func (p *part) applyEvent(object client.Object, c change) {
	key := objectKey(object)
	old, known, _ := p.store.GetByKey(key)
	var before, now client.Object
	if known {
		before = old.(client.Object)
	}
	if c == removed {
		_ = p.store.Delete(object)
		if before == nil {
			return
		}
		p.objects.Add(-1)
		before = object // its last state
	} else {
		now = object
		_ = p.store.Add(object)
		if before == nil {
			p.objects.Add(1)
		} else if same(before, now) {
			return
		}
	}
	for f := range p.feeds() {
		f.push(p, key, before, now, false)
	}
}

// replaceAll makes a listing the part's store and queues the differences for the feeds; an observer or a Sink gets the objects
// instead. The caller holds the Set's lock.
func (p *part) replaceAll(all *listing) {
	if p.isOwn() {
		p.observer(initial, all.objects...)
		return
	}
	if p.key.sink != nil {
		p.key.sink.Replace(p.key.namespace, all.resourceVersion, all.objects)
		return
	}
	before := p.store
	newer := p.newerElsewhere(all.resourceVersion)
	for _, object := range newer {
		_ = all.store.Add(object)
	}
	p.keepStore(all.store)
	for f := range p.feeds() {
		if more := p.knownElsewhere(f); len(more) > 0 || len(newer) > 0 {
			known := storedObjects(before)
			maps.Copy(known, more)
			f.tellAll(p, compareStores(known, p.store))
			continue
		}
		f.tellAll(p, all.differences)
	}
	p.known = nil
}

// knownElsewhere returns, by namespace/name, the objects that a feed got from the parts of namespaces whose place this part takes
// in Auto leases.
func (p *part) knownElsewhere(f *feed) map[string]client.Object {
	all := maps.Clone(p.known[f])
	if all == nil {
		all = map[string]client.Object{}
	}
	for l, q := range p.standIns() {
		if l.owner.Controller == f.controller {
			maps.Copy(all, q.known[f])
			maps.Copy(all, q.listContents())
		}
	}
	return all
}

// newerElsewhere returns the objects that parts of namespaces hold in Auto leases at a later resourceVersion than this part's list.
// Without them, readers who change to this part would miss these objects until the watch brings them.
func (p *part) newerElsewhere(resourceVersion string) []client.Object {
	var newer []client.Object
	for _, q := range p.standIns() {
		for _, object := range q.listContents() {
			if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), resourceVersion); err == nil && order > 0 {
				newer = append(newer, object)
			}
		}
	}
	return newer
}

// standIns yields the parts of namespaces that Auto leases read from while p, a cluster-wide part, is Forbidden.
func (p *part) standIns() iter.Seq2[*Lease, *part] {
	return func(yield func(*Lease, *part) bool) {
		for l := range p.leases {
			if !l.cover.switchesFrom(p) {
				continue
			}
			for q := range l.cover.standIns() {
				if !yield(l, q) {
					return
				}
			}
		}
	}
}

// newStore returns a store of the objects by namespace/name, and for a cluster-wide part by namespace too.
func (p *part) newStore(objects []client.Object) cache.Indexer {
	indexers := cache.Indexers{}
	if p.key.kind == clusterScope {
		indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	items := make([]any, len(objects))
	for i, object := range objects {
		items[i] = object
	}
	_ = store.Replace(items, "")
	return store
}

// keepStore makes store the one that the part's readers read. The caller holds the Set's lock.
func (p *part) keepStore(store cache.Indexer) {
	p.store = store
	p.objects.Store(int64(len(store.ListKeys())))
}

// listContents returns the objects in the part's store, by namespace/name.
func (p *part) listContents() map[string]client.Object { return storedObjects(p.store) }

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
