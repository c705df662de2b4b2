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

// feed tells the handler of one Source what happens, in a goroutine of its own: a slow one delays nobody else. It holds one
// entry per object at most.
type feed struct {
	feedKey
	handler   handler.EventHandler
	predicate predicate.Predicate
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
	work      workqueue.TypedInterface[entryKey]

	mu      sync.Mutex // taken after the Set's lock
	entries map[entryKey]*entry
}

type entryKey struct {
	part   *part
	object string // namespace/name
}

// entry is what the handler has seen of an object, and what there is now; nil is nothing.
type entry struct {
	seen, now client.Object
	listed    bool // it was there when the watch began
}

// push notes a change. before is what the handler was told last, unless an entry knows better.
func (f *feed) push(p *part, key string, before, now client.Object, listed bool) {
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

// tellAll tells differences that a list of the part showed.
func (f *feed) tellAll(p *part, all []difference) {
	for _, d := range all {
		f.push(p, d.key, d.before, d.now, true)
	}
}

func same(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && a.GetResourceVersion() != ""
}

// drop forgets what the handler wasn't told yet of a part, but for objects that are gone. It returns what the handler was told
// before of those that it forgets.
func (f *feed) drop(p *part) map[string]client.Object {
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

// passOn makes what the handler wasn't told yet of p be told for heir.
func (f *feed) passOn(p, heir *part) {
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

// run tells the handler until the feed is shut down.
func (f *feed) run(ctx context.Context) {
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
			f.tell(context.WithValue(ctx, partOf{}, at.part), e)
		}
		f.work.Done(at)
	}
}

// partOf is the key of the part in a handler's context.
type partOf struct{}

func (f *feed) tell(ctx context.Context, e *entry) {
	switch {
	case e.seen == nil && e.now == nil:
	case e.seen == nil:
		f.create(ctx, e)
	case e.now == nil:
		f.gone(ctx, e)
	case e.seen.GetUID() != e.now.GetUID():
		f.gone(ctx, e)
		f.create(ctx, e)
	default:
		f.update(ctx, e)
	}
}

func (f *feed) create(ctx context.Context, e *entry) {
	told := event.CreateEvent{Object: e.now, IsInInitialList: e.listed}
	if f.predicate.Create(told) {
		f.handler.Create(ctx, told, f.queue)
	}
}

func (f *feed) update(ctx context.Context, e *entry) {
	told := event.UpdateEvent{ObjectOld: e.seen, ObjectNew: e.now}
	if f.predicate.Update(told) {
		f.handler.Update(ctx, told, f.queue)
	}
}

func (f *feed) gone(ctx context.Context, e *entry) {
	told := event.DeleteEvent{Object: e.seen, DeleteStateUnknown: e.listed}
	if f.predicate.Delete(told) {
		f.handler.Delete(ctx, told, f.queue)
	}
}
