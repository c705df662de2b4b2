package watchset

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sink gets the objects of informers, for a caller that keeps its own store of them. Its methods are called while the
// Set is locked: they must be quick, and must not call the Set or a NamespaceSet. Calls about one namespace come one at
// a time, and in the order in which things happened.
type Sink interface {
	// Replace reports that exactly these objects existed at a resourceVersion: in a namespace, or in the whole cluster
	// if namespace is empty. The Set calls it only when a watch is open. After Pending, Forbidden and NotServed, it
	// calls Replace before the state becomes Synced. In Synced and Degraded, it calls Replace when a watch can't
	// continue where the last one ended, for example because that resourceVersion has expired. After that, Degraded
	// becomes Synced. While an Auto lease changes between the cluster and its namespaces, objects put before by another
	// informer of the lease may be newer.
	Replace(namespace, resourceVersion string, all []client.Object)
	// Put reports that an object exists, Gone that it doesn't, or no longer matches the selectors.
	Put(client.Object)
	Gone(client.Object)
	// State reports the state of the informer of a namespace, or of the cluster-wide one if namespace is empty. It is
	// called when the state begins, and when its error or its resource changes. A watch that ends and is opened again
	// within Options.DegradedAfter changes nothing.
	//
	// In Synced, the objects put so far are those that exist. In Degraded, they are as last seen; there are none if no
	// Replace came since Forbidden, NotServed or Pending. An informer that never listed anything becomes Degraded, too,
	// when Options.DegradedAfter has passed since the first attempt. The Set tries again by itself; Put and Gone may
	// come meanwhile. In Forbidden and NotServed, objects put before no longer count, and no Put or Gone follows before
	// the next Replace. Pending means that no informer follows the namespace: objects put before no longer count,
	// unless another informer of the lease shows them. In an Auto lease, the cluster-wide informer becomes Synced
	// before those of the namespaces become Pending, and Forbidden before these begin.
	//
	// For a Request of a Kind, now has in Synced and Forbidden the resource and version by which the server serves the
	// kind.
	State(namespace string, now Status)
}

// Trimmer is a Sink that needs less of an object than the server sends. Trim is called once for each object as soon as it
// arrives, from any goroutine, and returns what Replace, Put and Gone get. So the annotations of a large list are not
// held until the list is complete. Trim may change the object, but not its kind, namespace, name, UID and
// resourceVersion.
type Trimmer interface {
	Trim(client.Object) client.Object
}

// passEventToSink passes one event to a Sink. The caller holds the Set's lock for reading.
func passEventToSink(s Sink, object client.Object, c change) {
	if c == removed {
		s.Gone(object)
		return
	}
	s.Put(object)
}

// reportStateToSink reports the part's status to the request's Sink, if it has one. The caller holds the Set's lock.
func (p *part) reportStateToSink() {
	if p.selection.key.sink != nil {
		p.selection.key.sink.State(p.selection.key.namespace, p.currentStatus())
	}
}

// reportWaitingPlaces reports to the Sink which namespaces have no informer because of MaxNamespaces. It also reports
// the namespaces in before, which had none earlier, that the lease needs no longer. followed holds the namespaces that
// have an informer. The caller holds the Set's lock.
func (l *Lease) reportWaitingPlaces(before []string, followed map[string]bool) {
	if l.key.sink == nil {
		return
	}
	for _, namespace := range before {
		if !followed[namespace] && !l.cover.hasNoRoomFor(namespace) {
			l.key.sink.State(namespace, Status{State: Pending})
		}
	}
	for _, namespace := range l.cover.waiting {
		l.key.sink.State(namespace, pendingStatus(true))
	}
}

// sink is the cache.ReflectorStore of a run; it writes into the part's store, or to the Sink of the request. The
// reflector calls it from one goroutine.
type sink struct {
	run *run
	// undecoded holds, by namespace/name, why an object's last state could not be decoded.
	undecoded map[string]error
}

// Add implements cache.ReflectorStore, and so do Update, Delete, Resync and Replace.
func (s *sink) Add(obj any) error    { return s.putEvent(obj, put) }
func (s *sink) Update(obj any) error { return s.putEvent(obj, put) }
func (s *sink) Delete(obj any) error { return s.putEvent(obj, removed) }
func (s *sink) Resync() error        { return nil }

func (s *sink) Replace(objs []any, resourceVersion string) error {
	p := s.run.part
	all := make([]client.Object, 0, len(objs))
	s.undecoded = map[string]error{}
	for _, obj := range objs {
		object, err := s.prepareAndRecord(obj)
		if err != nil {
			object = s.findKnownObject(obj) // the object stays in its last known state: it isn't gone
		}
		if object != nil {
			all = append(all, object)
		}
	}
	listed := newListing(p, all, resourceVersion)
	s.run.callUnderSetLock(func() {
		r := s.run
		r.freeListSlot()
		r.undecoded = s.firstUndecoded()
		if !r.open {
			r.staged = listed // readers get it when the watch is open
			return
		}
		r.fresh = true
		p.replaceByListing(listed)
		r.becomeSyncedOnce()
	})
	return nil
}

// Transformer implements cache.TransformingStore. With it the reflector transforms each of a watch's initial objects as
// it arrives, and never holds all of them untransformed. An object that can't be decoded is left to Replace, because
// the reflector would drop it.
func (s *sink) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		object, err := s.run.part.selection.prepareObject(obj)
		if err != nil {
			return obj, nil //nolint:nilerr // see above
		}
		return stored{object}, nil
	}
}

// prepareAndRecord is prepareObject, and records in undecoded whether obj could be decoded.
func (s *sink) prepareAndRecord(obj any) (client.Object, error) {
	object, err := s.run.part.selection.prepareObject(obj)
	if err == nil && len(s.undecoded) == 0 {
		return object, nil
	}
	if raw, ok := obj.(client.Object); ok {
		key := objectKey(raw)
		if delete(s.undecoded, key); err != nil {
			s.undecoded[key] = fmt.Errorf("decoding %s: %w", key, err)
		}
	}
	return object, err
}

// findKnownObject returns an object as the part's store has it; nil if it isn't there.
func (s *sink) findKnownObject(obj any) (known client.Object) {
	if raw, ok := obj.(client.Object); ok {
		s.run.part.set.lock.readUnderLock(func() { known = s.run.part.contents.findStoredObject(objectKey(raw)) })
	}
	return known
}

// firstUndecoded returns the reason of the first name in undecoded, in alphabetical order; nil if all objects could be
// decoded.
func (s *sink) firstUndecoded() error {
	for _, key := range slices.Sorted(maps.Keys(s.undecoded)) {
		return s.undecoded[key]
	}
	return nil
}

// decodeEventObject is prepareAndRecord for an event. For a deleted object that can't be decoded it returns the last
// known state. It also updates the part's state: the part becomes Degraded if an object can't be decoded for
// DegradedAfter.
func (s *sink) decodeEventObject(obj any, c change) (client.Object, error) {
	before := len(s.undecoded)
	object, err := s.prepareAndRecord(obj)
	if err != nil && c == removed {
		if known := s.findKnownObject(obj); known != nil {
			delete(s.undecoded, objectKey(known))
			object, err = known, nil
		}
	}
	if before > 0 || len(s.undecoded) > 0 {
		s.run.callUnderSetLock(func() { s.run.recordUndecoded(s.firstUndecoded()) })
	}
	return object, err
}

func (s *sink) putEvent(obj any, c change) error {
	p := s.run.part
	object, err := s.decodeEventObject(obj, c)
	if err != nil {
		return nil //nolint:nilerr // the part says so
	}
	if p.selection.isWatchedForSet() {
		s.run.callUnderSetLock(func() { p.selection.observer(c, object) })
		return nil
	}
	p.set.lock.readUnderLock(func() {
		switch {
		case s.run.over:
		case p.selection.key.sink != nil:
			passEventToSink(p.selection.key.sink, object, c)
		default:
			s.applyWatchEvent(object, c)
		}
	})
	return nil
}

// applyWatchEvent puts one event of a watch into the part's store and queues it for the feeds. The caller holds the
// Set's lock for reading.
func (s *sink) applyWatchEvent(object client.Object, c change) {
	p := s.run.part
	d, news := p.contents.applyToStore(object, c)
	if !news {
		return
	}
	for f := range p.feedsOfPart() {
		f.queueChange(p, d.key, d.before, d.now, false)
	}
}

// change is what happened to an object.
type change int8

const (
	put change = iota
	removed
	initial // a list, or the beginning of a watch, has it
)

// stored wraps an object that Transformer has transformed, so that it isn't transformed twice.
type stored struct{ client.Object }
