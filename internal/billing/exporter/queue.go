package exporter

import (
	"sync"
	"time"
)

// change is one event of a watch, or a census of a list, and when it came.
type change struct {
	facts any // a *namespaceFacts, a *tenantFacts, or a census
	gone  bool
	seen  time.Time
}

// queue holds changes until the tracker takes them. It is unbounded, because a watch that waited for room would lose events.
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

func (q *queue) isEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.changes) == 0
}
