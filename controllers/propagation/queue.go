package propagation

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/warren-tenancy/warren/internal/propagate"
)

// what a key asks to look at.
type what int8

const (
	aNamespace what = iota // every slot in a namespace
	aSource                // a source: read it, or make sure that it is gone
	aSlot                  // one slot
)

// key is one piece of work. Equal keys are done once.
type key struct {
	what what
	slot propagate.Slot
}

func namespaceKey(namespace string) key { return key{aNamespace, propagate.Slot{Namespace: namespace}} }
func sourceKey(slot propagate.Slot) key { return key{aSource, slot} }
func slotKey(slot propagate.Slot) key   { return key{aSlot, slot} }
func slotKeys(slots []propagate.Slot) []key {
	keys := make([]key, len(slots))
	for i, slot := range slots {
		keys[i] = slotKey(slot)
	}
	return keys
}

// lane is what shares a turn: all slots of one source.
type lane struct {
	kind            schema.GroupKind
	namespace, name string
}

// queue holds the keys that are to be looked at, on the leader alone: a standby keeps tables, but no work.
type queue struct {
	delaying workqueue.TypedDelayingInterface[key]
	leading  atomic.Bool
	working  atomic.Int64 // keys that are worked on
}

// newQueue returns a queue in which plan says what a slot needs, and so how urgent its key is.
func newQueue(plan func(propagate.Slot) propagate.Action) *queue {
	fair := newFairQueue(func(k key) (int, lane) { return urgencyOf(k, plan) })
	return &queue{delaying: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: fair}),
	})}
}

// add queues keys. The caller holds no lock.
func (q *queue) add(keys ...key) {
	if !q.leading.Load() {
		return
	}
	for _, k := range keys {
		q.delaying.Add(k)
	}
}

// addAfter queues a key when some time has passed.
func (q *queue) addAfter(k key, delay time.Duration) { q.delaying.AddAfter(k, delay) }

// workOne hands one key to work. It returns false when the queue has been shut down.
func (q *queue) workOne(work func(key)) bool {
	k, shutdown := q.delaying.Get()
	if shutdown {
		return false
	}
	q.working.Add(1)
	defer q.working.Add(-1)
	defer q.delaying.Done(k)
	work(k)
	return true
}

// isIdle says whether nothing waits or is worked on, but for what is to be tried again later.
func (q *queue) isIdle() bool { return q.working.Load() == 0 && q.delaying.Len() == 0 }

// urgencyOf says what a key is worth: whatever costs no write of a copy first, then deletions, then the rest, in turns by
// source.
func urgencyOf(k key, plan func(propagate.Slot) propagate.Action) (class int, of lane) {
	if k.what != aSlot {
		return 0, lane{}
	}
	action := plan(k.slot)
	of = lane{action.Source.Kind, action.Source.Namespace, action.Source.Name}
	if action.Verb == propagate.Delete {
		return 1, of
	}
	return 2, of
}

// fairQueue orders keys by class, and within a class in turns by lane. It implements workqueue.Queue, which calls it
// under its own lock.
type fairQueue struct {
	urgency func(key) (int, lane)
	classes [3]class
	size    int
}

type class struct {
	lanes map[lane][]key
	turns []lane // those with keys, in the order of their turns
}

func newFairQueue(urgency func(key) (int, lane)) *fairQueue {
	q := &fairQueue{urgency: urgency}
	for i := range q.classes {
		q.classes[i].lanes = map[lane][]key{}
	}
	return q
}

// Touch implements workqueue.Queue. A key that waits keeps its turn.
func (q *fairQueue) Touch(key) {}

// Push implements workqueue.Queue.
func (q *fairQueue) Push(k key) {
	number, of := q.urgency(k)
	c := &q.classes[number]
	if len(c.lanes[of]) == 0 {
		c.turns = append(c.turns, of)
	}
	c.lanes[of] = append(c.lanes[of], k)
	q.size++
}

// Len implements workqueue.Queue.
func (q *fairQueue) Len() int { return q.size }

// Pop implements workqueue.Queue. It is called only when Len is not 0.
func (q *fairQueue) Pop() key {
	for i := range q.classes {
		c := &q.classes[i]
		if len(c.turns) == 0 {
			continue
		}
		of := c.turns[0]
		k := c.lanes[of][0]
		c.turns = c.turns[1:]
		if rest := c.lanes[of][1:]; len(rest) > 0 {
			c.lanes[of] = rest
			c.turns = append(c.turns, of)
		} else {
			delete(c.lanes, of)
		}
		q.size--
		return k
	}
	panic("Pop on an empty queue")
}
