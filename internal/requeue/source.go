// Package requeue makes a controller reconcile again without an event of a watch.
package requeue

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Source is a source of a controller by which other parts of the program requeue requests. Before the controller starts, Add does nothing:
// a controller reconciles everything when it starts. On a replica that doesn't lead, most controllers don't start. The zero value is ready
// for use.
type Source[request comparable] struct {
	// First are requests that Start adds, because no event brings them.
	First []request

	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[request]]
}

// Start implements source.TypedSource.
func (s *Source[request]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	s.queue.Store(&queue)
	s.Add(s.First...)
	return nil
}

// Add requeues these requests.
func (s *Source[request]) Add(requests ...request) {
	if queue := s.queue.Load(); queue != nil {
		for _, r := range requests {
			(*queue).Add(r)
		}
	}
}

// AddAfter requeues these requests after the pause.
func (s *Source[request]) AddAfter(pause time.Duration, requests ...request) {
	if queue := s.queue.Load(); queue != nil {
		for _, r := range requests {
			(*queue).AddAfter(r, pause)
		}
	}
}
