package distribution

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/warren-tenancy/warren/internal/fairqueue"
)

// key is one piece of work: the write of one target, or, if namespace is empty, a review of all targets of the distribution.
type key struct{ distribution, namespace string }

// attributesOf returns a key's place in the queue: reviews come first, then writes, in turns by distribution. There are no turns by
// tenant, because distributions belong to the cluster's administrators.
func attributesOf(k key) fairqueue.Attributes {
	if k.namespace == "" {
		return fairqueue.Attributes{}
	}
	return fairqueue.Attributes{Class: 1, Lane: k.distribution}
}

// queue holds the keys that await a worker, and tells each run which of its targets are among them. Its callers hold no lock.
type queue struct {
	*fairqueue.Queue[key]
	runs *runs
	pace time.Duration
}

func newQueue(r *runs, pace time.Duration) *queue {
	return &queue{Queue: fairqueue.New(attributesOf, clock.RealClock{}), runs: r, pace: pace}
}

// add queues keys on the leader, and marks their targets as open in their runs. On other replicas it does nothing.
func (q *queue) add(keys ...key) {
	if !q.Leads() {
		return
	}
	for _, k := range keys {
		if k.namespace == "" {
			continue
		}
		if r := q.runs.find(k.distribution); r != nil {
			r.noteOpen(k.namespace)
		}
	}
	q.Add(keys...)
}

// reviewSoon queues a review at once if no target is open, else after pace if none is due by then.
func (q *queue) reviewSoon(r *run) {
	switch idle, late := r.dueForReview(time.Now(), q.pace); {
	case idle:
		q.Add(key{distribution: r.name})
	case late:
		q.AddAfter(key{distribution: r.name}, q.pace)
	}
}
