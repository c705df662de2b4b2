package webhooks_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// request is a request that is sent to the webhooks.
type request func(context.Context) error

// asking sends one request every 100 ms: the first of its requests, then the next, and after the last the first again.
type asking struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	made     int
	failures []string
}

// ask begins to make the requests in turn.
func ask(ctx context.Context, requests map[string]request) *asking {
	ctx, cancel := context.WithCancel(ctx)
	a := &asking{cancel: cancel}
	names := slices.Sorted(maps.Keys(requests))
	a.done.Go(func() {
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			name := names[i%len(names)]
			a.note(ctx, name, requests[name](ctx))
		}
	})
	return a
}

func (a *asking) note(ctx context.Context, name string, err error) {
	if ctx.Err() != nil {
		return // it was cut off by stop
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made++
	if err != nil {
		a.failures = append(a.failures, fmt.Sprintf("%s, request %d: %v", name, a.made, err))
	}
}

// count is how many were answered.
func (a *asking) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.made
}

// stop ends it and returns what failed.
func (a *asking) stop() []string {
	a.cancel()
	a.done.Wait()
	return a.failures
}
