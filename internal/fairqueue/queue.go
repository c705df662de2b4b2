package fairqueue

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Queue holds the keys K of work, on the leader alone: a standby keeps tables, but does no work. Equal keys are done once. Tenants take
// turns, and so do the lanes within a tenant; see Attributes. Of the work that sends many bytes (its Weight), no more than maxWeight is under
// way at once, or a single key that weighs more. While several tenants have work, each has sharedWorkers for what isn't urgent, and heavy work makes
// way for the others (see shares).
type Queue[K comparable] struct {
	clock    clock.WithTickerAndDelayedExecution
	delaying workqueue.TypedDelayingInterface[K]
	leading  atomic.Bool
	working  atomic.Int64 // how many keys are worked on
	shares   *shares[K]
}

// New returns the queue of a replica that does not lead. attributesOf is called under the queue's lock when a key comes. It may take
// locks of its own, which nobody may hold while calling the queue, and must not call the queue itself.
func New[K comparable](attributesOf func(K) Attributes, c clock.WithTickerAndDelayedExecution) *Queue[K] {
	s := newShares[K](c)
	turnNow := func(k K) Attributes {
		if turn, ok := s.reservedTurn(k); ok {
			return turn
		}
		return attributesOf(k)
	}
	return &Queue[K]{shares: s, clock: c, delaying: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Clock: c,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: NewOrder(turnNow, s.note)}),
	})}
}

// Lead makes this replica's queue take keys.
func (q *Queue[K]) Lead() { q.leading.Store(true) }

// Leads says whether Lead was called.
func (q *Queue[K]) Leads() bool { return q.leading.Load() }

// Add queues keys. The caller holds no lock.
func (q *Queue[K]) Add(keys ...K) {
	if !q.Leads() {
		return
	}
	for _, k := range keys {
		q.delaying.Add(k)
	}
}

// AddAfter queues a key when some time has passed.
func (q *Queue[K]) AddAfter(k K, delay time.Duration) { q.delaying.AddAfter(k, delay) }

// WorkOne hands one key to work, which says whether its request was in vain, such as one that a policy refuses. WorkOne returns false when the queue
// has been shut down.
func (q *Queue[K]) WorkOne(work func(K) (inVain bool)) bool {
	for {
		k, shutdown := q.delaying.Get()
		if shutdown {
			return false
		}
		if of, begun := q.shares.begin(k); begun {
			q.workOn(k, of, work)
			return true
		}
		q.delaying.Done(k) // the key is set aside in shares until there is room
		q.reviewLater()
	}
}

// reviewLater looks, as long as keys are set aside, whether they have room because other tenants have no work any longer.
func (q *Queue[K]) reviewLater() {
	if q.delaying.ShuttingDown() || !q.shares.needsReview() {
		return
	}
	q.callLater(sharedFor, func() {
		q.Add(q.shares.review()...)
		q.reviewLater()
	})
}

// callLater calls do when some time has passed. While do hands keys over they count neither as set aside nor as queued, so the queue is not idle.
func (q *Queue[K]) callLater(after time.Duration, do func()) {
	q.clock.AfterFunc(after, func() {
		q.working.Add(1)
		defer q.working.Add(-1)
		do()
	})
}

func (q *Queue[K]) workOn(k K, of share, work func(K) (inVain bool)) {
	q.working.Add(1)
	defer q.working.Add(-1)
	begun, inVain := q.clock.Now(), false
	defer func() {
		// What the work has taken is given back, and what may have room now is queued.
		end := func() { q.Add(q.shares.end(of)...) }
		if rest := q.shares.rest(of, q.clock.Since(begun), inVain); rest > 0 {
			q.callLater(rest, end)
			return
		}
		end()
	}()
	defer q.delaying.Done(k)
	inVain = work(k)
}

// Len counts the keys that wait, without those whose delay (see AddAfter) is not over.
func (q *Queue[K]) Len() int { return q.delaying.Len() + q.shares.count() }

// IsIdle says whether no key waits or is worked on, without those whose delay (see AddAfter) is not over.
func (q *Queue[K]) IsIdle() bool { return q.working.Load() == 0 && q.Len() == 0 }

// ShutDown ends WorkOne when the keys that wait have been handed out.
func (q *Queue[K]) ShutDown() { q.delaying.ShutDown() }
