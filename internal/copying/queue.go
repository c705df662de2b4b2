// Package copying is the tools with which the packages propagation and distribution write copies: a queue that is fair to all tenants, and to all sources
// of each (queue.go), guarded requests (writer.go) with what their answers mean (answers.go), repairs of copies that somebody changes in a
// loop (repairs.go), and passes of the scrub over all copies (passes.go).
//
// A copy is an object that the operator wrote from another one, its source; a slot is the place (kind, namespace, name) of one copy.
package copying

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/warren-tenancy/warren/internal/turns"
)

// Queue holds the keys K of work, on the leader alone: a standby keeps tables, but does no work. Equal keys are done once. Tenants take
// turns, and so do the lanes L within a tenant; see turns.Turn. Of the work that sends many bytes (its Weight), no more than maxWeight is under
// way at once, or a single key that weighs more. While several tenants have work, each has sharedWorkers for what isn't urgent, and heavy work makes
// way for the others (see shares).
type Queue[K, L comparable] struct {
	delaying workqueue.TypedDelayingInterface[K]
	leading  atomic.Bool
	working  atomic.Int64 // how many keys are worked on
	shares   *shares[K, L]
}

// NewQueue returns the queue of a standby. turnOf says where a key waits. It is called under the queue's lock when the key comes, and must
// not call the queue.
func NewQueue[K, L comparable](turnOf func(K) turns.Turn[L]) *Queue[K, L] {
	s := newShares[K, L]()
	turnNow := func(k K) turns.Turn[L] {
		if turn, ok := s.reservedTurn(k); ok {
			return turn
		}
		return turnOf(k)
	}
	return &Queue[K, L]{shares: s, delaying: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: turns.NewLanes(turnNow, s.note)}),
	})}
}

// Lead makes this replica's queue take keys.
func (q *Queue[K, L]) Lead() { q.leading.Store(true) }

// Leads says whether Lead was called.
func (q *Queue[K, L]) Leads() bool { return q.leading.Load() }

// Add queues keys. The caller holds no lock.
func (q *Queue[K, L]) Add(keys ...K) {
	if !q.Leads() {
		return
	}
	for _, k := range keys {
		q.delaying.Add(k)
	}
}

// AddAfter queues a key when some time has passed.
func (q *Queue[K, L]) AddAfter(k K, delay time.Duration) { q.delaying.AddAfter(k, delay) }

// WorkOne hands one key to work, which says whether its request was in vain, such as one that a policy refuses. WorkOne returns false when the queue
// has been shut down.
func (q *Queue[K, L]) WorkOne(work func(K) (inVain bool)) bool {
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
func (q *Queue[K, L]) reviewLater() {
	if q.delaying.ShuttingDown() || !q.shares.needsReview() {
		return
	}
	q.callLater(sharedFor, func() {
		q.Add(q.shares.review()...)
		q.reviewLater()
	})
}

// callLater calls do when some time has passed. While do hands keys over they count neither as set aside nor as queued, so the queue is not idle.
func (q *Queue[K, L]) callLater(after time.Duration, do func()) {
	time.AfterFunc(after, func() {
		q.working.Add(1)
		defer q.working.Add(-1)
		do()
	})
}

func (q *Queue[K, L]) workOn(k K, of share, work func(K) (inVain bool)) {
	q.working.Add(1)
	defer q.working.Add(-1)
	begun, inVain := time.Now(), false
	defer func() {
		// What the work has taken is given back, and what may have room now is queued.
		end := func() { q.Add(q.shares.end(of)...) }
		if rest := q.shares.rest(of, time.Since(begun), inVain); rest > 0 {
			q.callLater(rest, end)
			return
		}
		end()
	}()
	defer q.delaying.Done(k)
	inVain = work(k)
}

// Len counts the keys that wait, without those whose delay (see AddAfter) is not over.
func (q *Queue[K, L]) Len() int { return q.delaying.Len() + q.shares.count() }

// IsIdle says whether no key waits or is worked on, without those whose delay (see AddAfter) is not over.
func (q *Queue[K, L]) IsIdle() bool { return q.working.Load() == 0 && q.Len() == 0 }

// ShutDown ends WorkOne when the keys that wait have been handed out.
func (q *Queue[K, L]) ShutDown() { q.delaying.ShutDown() }
