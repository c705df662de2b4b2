package watchset

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type feedKey struct {
	controller string
	resource   schema.GroupVersionResource
}

// feed passes events to the handler of one Source, in a goroutine of its own, so that a slow handler delays no other.
// It holds at most one entry per part and object: all changes that the handler hasn't got yet are combined in it.
type feed struct {
	feedKey
	handler   handler.EventHandler
	predicate predicate.Predicate
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
	work      workqueue.TypedInterface[entryKey]

	mu      sync.Mutex // guards entries; taken after the Set's lock
	entries map[entryKey]*entry
}

type entryKey struct {
	part   *part
	object string // namespace/name
}

// entry is one pending event: the object as the handler got it last (seen), and as it is now. nil means that there was,
// or is, no object.
type entry struct {
	seen, now client.Object
	listed    bool // a list showed the difference, not an event of a watch
}

// queueChange queues a change of an object. before is the object as the part held it; a pending entry of the object
// keeps its own older state instead, since the handler got that one last.
func (f *feed) queueChange(p *part, key string, before, now client.Object, listed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := entryKey{p, key}
	if e := f.entries[at]; e != nil {
		e.now = now
		return
	}
	f.entries[at] = &entry{seen: before, now: now, listed: listed}
	f.work.Add(at)
}

// queueDifferences queues the differences that a list of the part showed.
func (f *feed) queueDifferences(p *part, all []difference) {
	for _, d := range all {
		f.queueChange(p, d.key, d.before, d.now, true)
	}
}

func isSameVersion(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && a.GetResourceVersion() != ""
}

// dropPendingOf removes a part's pending entries, except those of objects that are gone. It returns the removed objects
// as the handler got them last, by namespace/name; nil for objects that the handler never got.
func (f *feed) dropPendingOf(p *part) map[string]client.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	dropped := map[string]client.Object{}
	for at, e := range f.entries {
		if at.part == p && e.now != nil {
			dropped[at.object] = e.seen
			delete(f.entries, at)
		}
	}
	return dropped
}

// movePendingEntries moves the pending entries of p to heir, the part that takes p's place. Where heir has an entry of
// the same object, that entry takes over the state that the handler got last.
func (f *feed) movePendingEntries(p, heir *part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, e := range f.entries {
		if at.part != p {
			continue
		}
		delete(f.entries, at)
		to := entryKey{heir, at.object}
		if newer := f.entries[to]; newer != nil {
			newer.seen = e.seen
			continue
		}
		f.entries[to] = e
		f.work.Add(to)
	}
}

// passEntriesOn passes entries to the handler until the feed is shut down. Once ctx is done it only empties the queue.
func (f *feed) passEntriesOn(ctx context.Context) {
	for {
		at, down := f.work.Get()
		if down {
			return
		}
		f.mu.Lock()
		e := f.entries[at]
		delete(f.entries, at)
		f.mu.Unlock()
		if e != nil && ctx.Err() == nil {
			f.callHandlerFor(context.WithValue(ctx, partOf{}, at.part), e)
		}
		f.work.Done(at)
	}
}

// partOf is the key of the part in a handler's context.
type partOf struct{}

func (f *feed) callHandlerFor(ctx context.Context, e *entry) {
	switch {
	// The object was created and deleted before the handler got it, so there is nothing to pass on.
	case e.seen == nil && e.now == nil:
	case e.seen == nil:
		f.callCreateHandler(ctx, e)
	case e.now == nil:
		f.callDeleteHandler(ctx, e)
	// Another object has the name now: the handler gets the end of the old one, too.
	case e.seen.GetUID() != e.now.GetUID():
		f.callDeleteHandler(ctx, e)
		f.callCreateHandler(ctx, e)
	default:
		f.callUpdateHandler(ctx, e)
	}
}

func (f *feed) callCreateHandler(ctx context.Context, e *entry) {
	told := event.CreateEvent{Object: e.now, IsInInitialList: e.listed}
	if f.predicate.Create(told) {
		f.handler.Create(ctx, told, f.queue)
	}
}

func (f *feed) callUpdateHandler(ctx context.Context, e *entry) {
	told := event.UpdateEvent{ObjectOld: e.seen, ObjectNew: e.now}
	if f.predicate.Update(told) {
		f.handler.Update(ctx, told, f.queue)
	}
}

func (f *feed) callDeleteHandler(ctx context.Context, e *entry) {
	told := event.DeleteEvent{Object: e.seen, DeleteStateUnknown: e.listed}
	if f.predicate.Delete(told) {
		f.handler.Delete(ctx, told, f.queue)
	}
}
