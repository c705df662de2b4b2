package exporter

import (
	"sync"
	"time"
)

// change is one notification of a watch, in the order in which it came, with when it came.
type change struct {
	facts any // a *namespaceFacts, a *tenantFacts, or a census
	gone  bool
	seen  time.Time
}

// queue holds changes until the tracker takes them. It has no bound: to wait would lose what comes in between.
type queue struct {
	now    func() time.Time
	signal chan struct{}

	mu      sync.Mutex // guards changes
	changes []change
}

func newQueue(now func() time.Time) *queue {
	return &queue{now: now, signal: make(chan struct{}, 1)}
}

func (q *queue) put(facts any, gone bool) {
	q.mu.Lock()
	q.changes = append(q.changes, change{facts, gone, q.now()})
	q.mu.Unlock()
	select {
	case q.signal <- struct{}{}:
	default: // it is signalled already
	}
}

func (q *queue) take() []change {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.changes
	q.changes = nil
	return taken
}
