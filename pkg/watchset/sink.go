package watchset

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sink is the cache.ReflectorStore of a run. The reflector calls it from one goroutine.
type sink struct{ run *run }

// Add implements cache.ReflectorStore, and so do the next four.
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
	s.run.locked(func() {
		r := s.run
		r.freeSlot()
		if !r.open {
			r.staged = &listing{all, resourceVersion} // it counts when the watch is open
			return
		}
		r.fresh = true
		p.replace(&listing{all, resourceVersion})
		r.synced()
	})
	return nil
}

// Transformer implements cache.TransformingStore: what a stream begins with is made small before all of it is there.
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
	if p.own() {
		s.run.locked(func() { p.observer(c, object) })
		return nil
	}
	p.set.mu.RLock()
	defer p.set.mu.RUnlock()
	if !s.run.over {
		p.apply(object, c)
	}
	return nil
}

// listing is all there was at a resourceVersion.
type listing struct {
	objects         []client.Object
	resourceVersion string
}

// change is what happened to an object.
type change int8

const (
	put change = iota
	removed
	initial // it was there when the watch began
)

// stored wraps an object that was transformed, so that it isn't transformed twice.
type stored struct{ client.Object }

// stored returns an object as it is kept.
func (p *part) stored(obj any) (client.Object, error) {
	if done, ok := obj.(stored); ok {
		return done.Object, nil
	}
	object, err := typed(obj.(runtime.Object), p.key.form, p.set.options.Scheme)
	if err != nil || p.own() {
		return object, err
	}
	if transform, ok := p.set.options.Transform[p.key.resource]; ok {
		return transform(object), nil
	}
	return DefaultTransform(object), nil
}

// apply takes one event. The caller holds the Set's lock for reading.
func (p *part) apply(object client.Object, c change) {
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

// replace takes all objects at once, and tells the differences. The caller holds the Set's lock.
func (p *part) replace(all *listing) {
	if p.own() {
		p.observer(initial, all.objects...)
		return
	}
	before := p.contents()
	p.fill(append(all.objects, p.newerElsewhere(all.resourceVersion)...))
	for f := range p.feeds() {
		known := before
		if more := p.knownElsewhere(f); len(more) > 0 {
			known = maps.Clone(before)
			maps.Copy(known, more)
		}
		f.differences(p, known)
	}
	p.known = nil
}

// knownElsewhere is what a feed was told of by other parts of Auto leases, whose place this part takes.
func (p *part) knownElsewhere(f *feed) map[string]client.Object {
	all := maps.Clone(p.known[f])
	if all == nil {
		all = map[string]client.Object{}
	}
	for l, q := range p.standIns() {
		if l.owner.Controller == f.controller {
			maps.Copy(all, q.known[f])
			maps.Copy(all, q.contents())
		}
	}
	return all
}

// newerElsewhere are the objects that other parts of Auto leases have seen since this part's list was made: without them a reader
// would miss them until the watch brings them.
func (p *part) newerElsewhere(resourceVersion string) []client.Object {
	var newer []client.Object
	for _, q := range p.standIns() {
		for _, object := range q.contents() {
			if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), resourceVersion); err == nil && order > 0 {
				newer = append(newer, object)
			}
		}
	}
	return newer
}

// standIns are the parts that stand in for a cluster-wide one in Auto leases.
func (p *part) standIns() iter.Seq2[*Lease, *part] {
	return func(yield func(*Lease, *part) bool) {
		for l := range p.leases {
			for at, q := range l.parts {
				if l.scope.kind == autoScope && l.down && p.key.kind == clusterScope && at.kind == namespaceScope && !yield(l, q) {
					return
				}
			}
		}
	}
}

// fill makes the store hold exactly these objects.
func (p *part) fill(all []client.Object) {
	items := make([]any, len(all))
	for i, object := range all {
		items[i] = object
	}
	_ = p.store.Replace(items, "")
	p.objects.Store(int64(len(p.store.ListKeys())))
}

// contents are the objects by namespace/name.
func (p *part) contents() map[string]client.Object {
	all := map[string]client.Object{}
	for _, obj := range p.store.List() {
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
