package fairqueue

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Queue hands keys to workers, fairly and within limits; the package describes how. Equal keys wait once, and are never
// worked on at the same time: a key that is added while it is worked on waits again after that. All methods may be
// called at any time, by several goroutines.
type Queue[K comparable] struct {
	keys    *keys[K]
	delayed workqueue.TypedDelayingInterface[K] // adds to keys
	leading atomic.Bool
}

// New returns the queue of a replica that does not lead yet. attributesOf is called whenever a key is added, under the
// lock of the queue. So it must not call the queue. It may take another lock, but no goroutine that holds this other
// lock may call the queue.
func New[K comparable](attributesOf func(K) Attributes, c clock.WithTickerAndDelayedExecution) *Queue[K] {
	k := newKeys(attributesOf, c)
	return &Queue[K]{keys: k, delayed: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Queue: k, Clock: c})}
}

// Lead makes Add accept keys: this replica leads from now on.
func (q *Queue[K]) Lead() { q.leading.Store(true) }

// Add adds keys, if this replica leads.
func (q *Queue[K]) Add(keys ...K) {
	if !q.leading.Load() {
		return
	}
	for _, k := range keys {
		q.keys.Add(k)
	}
}

// AddAfter adds keys after a delay, whether or not this replica leads; without a delay it is Add. Of several delays of
// one key, the shortest counts.
func (q *Queue[K]) AddAfter(delay time.Duration, keys ...K) {
	if delay <= 0 {
		q.Add(keys...)
		return
	}
	for _, k := range keys {
		q.delayed.AddAfter(k, delay)
	}
}

// Work hands keys to this number of workers while caller runs. It returns when caller has ended and all keys that were
// handed out are done.
func (q *Queue[K]) Work(workers int, do func(K) (failed bool), caller func()) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for q.WorkOne(do) {
			}
		})
	}
	caller()
	q.ShutDown()
	running.Wait()
}

// WorkOne waits for a key that may begin, and calls do with it, which reports whether its request has failed. After
// ShutDown, WorkOne returns false without calling do.
func (q *Queue[K]) WorkOne(do func(K) (failed bool)) bool {
	k, shutdown := q.keys.Get()
	if shutdown {
		return false
	}
	failed := false
	defer func() { q.keys.endWork(k, failed) }()
	failed = do(k)
	return true
}

// Len returns how many keys wait, without those whose delay is not over.
func (q *Queue[K]) Len() int { return q.keys.Len() }

// IsIdle reports whether no key waits or is worked on, apart from those whose delay is not over.
func (q *Queue[K]) IsIdle() bool { return q.keys.isIdle() }

// ShutDown makes WorkOne return false. Keys that could begin now are handed out first; all others are dropped.
func (q *Queue[K]) ShutDown() { q.delayed.ShutDown() }

// keys holds the keys of a queue. It implements workqueue.TypedInterface, so that the delaying queue of client-go can
// add to it.
type keys[K comparable] struct {
	attributesOf func(K) Attributes
	clock        clock.WithDelayedExecution

	mu       sync.Mutex // guards all below
	mayBegin sync.Cond  // signalled when a key may begin that could not before
	waiting  Order[K]
	underWay map[K]work
	usage    usage
	wakeAt   time.Time // when the timer that fires next signals mayBegin
	shutdown bool
}

func newKeys[K comparable](attributesOf func(K) Attributes, c clock.WithDelayedExecution) *keys[K] {
	q := &keys[K]{attributesOf: attributesOf, clock: c, underWay: map[K]work{}}
	q.mayBegin.L = &q.mu
	return q
}

// work is a key that is worked on.
type work struct {
	Attributes
	begun time.Time
	again bool // the key was added again meanwhile
}

// Add implements workqueue.TypedInterface.
func (q *keys[K]) Add(k K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown {
		return
	}
	if w, ok := q.underWay[k]; ok {
		w.again = true
		q.underWay[k] = w
		return
	}
	q.addKey(k)
}

// addKey is called under the lock.
func (q *keys[K]) addKey(k K) {
	a := q.attributesOf(k)
	q.waiting.Push(k, a)
	q.usage.busy.recordWork(a, q.clock.Now())
	q.mayBegin.Signal()
}

// Get implements workqueue.TypedInterface. It waits for a key that may begin.
func (q *keys[K]) Get() (k K, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if k, ok := q.beginNext(); ok {
			return k, false
		}
		if q.shutdown {
			return k, true
		}
		q.setTimer()
		q.mayBegin.Wait()
	}
}

// beginNext returns the next key that may begin now. It is called under the lock.
func (q *keys[K]) beginNext() (K, bool) {
	now := q.clock.Now()
	q.usage.endRests(now)
	k, a, ok := q.waiting.popIf(func(a Attributes) bool { return q.usage.hasRoom(a, now) })
	if ok {
		q.usage.beginWork(a)
		q.usage.busy.recordWork(a, now)
		q.underWay[k] = work{Attributes: a, begun: now}
		q.mayBegin.Signal() // one signal may stand for room for several keys
	}
	return k, ok
}

// setTimer wakes a worker when time alone makes room for a key that waits. It is called under the lock.
func (q *keys[K]) setTimer() {
	now := q.clock.Now()
	next := q.usage.nextChange(now)
	if q.waiting.Len() == 0 || next.IsZero() || q.wakeAt.After(now) && !next.Before(q.wakeAt) {
		return
	}
	q.wakeAt = next
	q.clock.AfterFunc(next.Sub(now), func() {
		go func() { // a fake clock calls this function under its own lock
			q.mu.Lock()
			defer q.mu.Unlock()
			q.mayBegin.Signal()
		}()
	})
}

// endWork ends the work on a key.
func (q *keys[K]) endWork(k K, failed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, w := q.clock.Now(), q.underWay[k]
	delete(q.underWay, k)
	q.usage.endWork(w.Attributes, now.Sub(w.begun), failed, now)
	if w.again {
		q.addKey(k)
	}
	q.mayBegin.Signal()
}

// Done implements workqueue.TypedInterface.
func (q *keys[K]) Done(k K) { q.endWork(k, false) }

// Len implements workqueue.TypedInterface.
func (q *keys[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}

func (q *keys[K]) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len() == 0 && len(q.underWay) == 0
}

// ShutDown implements workqueue.TypedInterface.
func (q *keys[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutdown = true
	q.mayBegin.Broadcast()
}

// ShutDownWithDrain implements workqueue.TypedInterface.
func (q *keys[K]) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown implements workqueue.TypedInterface.
func (q *keys[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shutdown
}
