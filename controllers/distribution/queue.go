package distribution

import (
	"time"

	"github.com/warren-tenancy/warren/internal/copying"
)

// key is one piece of work: a review of all targets of a distribution, or of one namespace where that is said.
type key struct{ distribution, namespace string }

// turnOf says when a key is worked on: reviews first, then writes, in turns by distribution. Distributions belong to the cluster, not to
// its tenants.
func turnOf(k key) copying.Turn[string] {
	if k.namespace == "" {
		return copying.Turn[string]{}
	}
	return copying.Turn[string]{Class: 1, Lane: k.distribution}
}

// queue holds the keys that are to be looked at, and has each run know which of its targets are among them. Its callers hold no lock.
type queue struct {
	*copying.Queue[key, string]
	runs *runs
	pace time.Duration
}

func newQueue(r *runs, pace time.Duration) *queue {
	return &queue{Queue: copying.NewQueue(turnOf), runs: r, pace: pace}
}

// add queues keys, and notes which targets are to be written.
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

// reviewSoon has a distribution reviewed when nothing is left to be written, or after a while.
func (q *queue) reviewSoon(r *run) {
	switch idle, late := r.dueForReview(time.Now(), q.pace); {
	case idle:
		q.Add(key{distribution: r.name})
	case late:
		q.AddAfter(key{distribution: r.name}, q.pace)
	}
}
