package distribution

import (
	"context"

	"golang.org/x/time/rate"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
)

// scrub has every locked copy read once in the interval, on the leader: what no metadata shows is found so.
func (c *Controller) scrub(ctx context.Context) {
	passes := copying.Passes{
		Pace: func() copying.Scrub {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.settings.Scrub
		},
		Ready: func() bool { return c.Ready(nil) == nil }, Unprotected: c.Unprotected, Tick: c.Timing.ScrubTick,
	}
	passes.Run(ctx, func(ctx context.Context, pace copying.Scrub) {
		c.scrubAll(ctx, rate.NewLimiter(rate.Limit(pace.ObjectsPerSecond), max(1, pace.ObjectsPerSecond)))
	})
}

// scrubAll has the copies of every distribution with driftPolicy Revert inspected, one after the other.
func (c *Controller) scrubAll(ctx context.Context, limiter *rate.Limiter) {
	c.mu.Lock()
	var keys []key
	for name, r := range c.runs {
		if r.Problem != "" || r.Drift != v1alpha1.DriftRevert {
			continue
		}
		for namespace, one := range c.copies.Of(r.Template.Family()) {
			if one.Ours && one.By == name {
				keys = append(keys, key{name, namespace})
			}
		}
	}
	c.mu.Unlock()
	for _, k := range keys {
		if limiter.Wait(ctx) != nil {
			return
		}
		c.mu.Lock()
		if r := c.runs[k.distribution]; r != nil && r.Template != nil {
			slot := r.Template.Slot(k.namespace)
			if one := c.copies.At(slot); one != nil && !one.Drifted {
				one.Known = false // planned as Inspect
				c.copies.Put(slot, one)
			}
		}
		c.mu.Unlock()
		c.enqueue(k)
	}
}
