package watchset

import (
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
		object, err := p.selection.prepareObject(obj)
		if err != nil {
			return err
		}
		all = append(all, object)
	}
	listed := newListing(p, all, resourceVersion)
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
		object, err := s.run.part.selection.prepareObject(obj)
		return stored{object}, err
	}
}

func (s *sink) put(obj any, c change) error {
	p := s.run.part
	object, err := p.selection.prepareObject(obj)
	if err != nil {
		return err
	}
	if p.selection.isOwn() {
		s.run.locked(func() { p.selection.observer(c, object) })
		return nil
	}
	p.set.lock.read(func() {
		switch {
		case s.run.over:
		case p.selection.key.sink != nil:
			tellSink(p.selection.key.sink, object, c)
		default:
			s.applyEvent(object, c)
		}
	})
	return nil
}

// applyEvent puts one event of a watch into the part's store and queues it for the feeds. The caller holds the Set's lock for reading.
func (s *sink) applyEvent(object client.Object, c change) {
	p := s.run.part
	d, news := p.contents.apply(object, c)
	if !news {
		return
	}
	for f := range p.feeds() {
		f.push(p, d.key, d.before, d.now, false)
	}
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
