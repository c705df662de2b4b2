package watchset

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source returns a source that passes the events of a resource's objects to h. They are the events of every informer
// that an owner of this controller leases. A controller registers it once; informers that start or end later need no
// further registration. WaitForSync returns at once, so a missing right never keeps a controller from starting. Where
// informers overlap, an event may come twice; while h is slow, several changes of one object become one event. For a
// Request of a CRD's kind without a version, the version of resource does not matter. h == nil means EnqueueOwners.
func (s *Set) Source(controller string, resource schema.GroupVersionResource, h handler.EventHandler,
	p ...predicate.Predicate) source.SyncingSource {
	if h == nil {
		h = s.EnqueueOwners(controller)
	}
	// In a priority queue, objects of an informer's first list wait behind objects that change now.
	h = handler.WithLowPriorityWhenUnchanged(h)
	return &eventSource{set: s, key: feedKey{controller, resource}, handler: h, predicate: predicate.And(p...)}
}

// eventSource is the source.Source that Set.Source returns; each call of its Start makes a feed.
type eventSource struct {
	set       *Set
	key       feedKey
	handler   handler.EventHandler
	predicate predicate.Predicate
}

// Start implements source.Source.
func (e *eventSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f := &feed{
		feedKey: e.key, handler: e.handler, predicate: e.predicate, queue: queue,
		work: workqueue.NewTyped[entryKey](), entries: map[entryKey]*entry{},
	}
	var err error
	e.set.lock.changeUnderLock(func() { err = e.startFeedingFrom(ctx, f) })
	return err
}

// startFeedingFrom passes the objects that parts hold, and from now on their changes, to a feed until ctx is done. The
// caller holds the Set's lock, as the caller of dropFeedOfSource does.
func (e *eventSource) startFeedingFrom(ctx context.Context, f *feed) error {
	s := e.set
	if s.stopped {
		return ErrStopped
	}
	s.listeners.addEventFeed(f)
	for _, p := range s.parts.all {
		if slices.Contains(f.feedKeys(), feedKey{f.controller, p.selection.feedResource()}) &&
			p.demand.controllers[f.controller] > 0 && p.hasCompleteStore() {
			f.queueDifferences(p, compareStores(nil, p.contents.store))
		}
	}
	s.running.Go(func() { f.passEntriesOn(ctx) })
	context.AfterFunc(ctx, func() { s.lock.changeUnderLock(func() { e.dropFeedOfSource(f) }) })
	return nil
}

// WaitForSync implements source.SyncingSource. There is nothing to wait for.
func (e *eventSource) WaitForSync(context.Context) error { return nil }

// String names the source in logs.
func (e *eventSource) String() string {
	return fmt.Sprintf("watchset: %s for %s", e.key.resource.GroupResource(), e.key.controller)
}

func (e *eventSource) dropFeedOfSource(f *feed) {
	f.work.ShutDown()
	e.set.listeners.dropEventFeed(f)
	for _, p := range e.set.parts.all {
		delete(p.contents.known, f)
	}
}

// feedsOfPart yields the feeds that get the part's events: those of the part's resource whose controllers have a lease
// on the part.
func (p *part) feedsOfPart() iter.Seq[*feed] {
	return func(yield func(*feed) bool) {
		for controller := range p.demand.controllers {
			for _, f := range p.set.listeners.feeds[feedKey{controller, p.selection.feedResource()}] {
				if !yield(f) {
					return
				}
			}
		}
	}
}
