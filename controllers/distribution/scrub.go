package distribution

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// scrubTick is how often it is asked whether a scrub is due.
const scrubTick = time.Second

// scrub has every locked copy read once in the interval, on the leader: what no metadata shows is found so. The first pass
// comes after a random share of it, so that operators that are started together don't read together.
func (c *Controller) scrub(ctx context.Context) {
	share, last := rand.Float64(), time.Now()
	first := true
	for {
		c.mu.Lock()
		s := c.settings.Scrub
		c.mu.Unlock()
		wait := s.Interval
		if first {
			wait = time.Duration(share * float64(s.Interval))
		}
		if s.Interval > 0 && time.Since(last) >= wait && c.Ready(nil) == nil {
			c.scrubAll(ctx, rate.NewLimiter(rate.Limit(s.ObjectsPerSecond), max(1, s.ObjectsPerSecond)))
			first, last = false, time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(scrubTick):
		}
	}
}

// scrubAll has the copies of every distribution with driftPolicy Revert inspected, one after the other.
func (c *Controller) scrubAll(ctx context.Context, limiter *rate.Limiter) {
	c.mu.Lock()
	var keys []key
	for name, r := range c.runs {
		if r.Problem != "" || r.Drift != v1alpha1.DriftRevert {
			continue
		}
		for namespace, one := range c.copies[familyOf(r.Template)] {
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
			if one := c.copies[familyOf(r.Template)][k.namespace]; one != nil && !one.Drifted {
				one.Known = false // planned as Inspect
			}
		}
		c.mu.Unlock()
		c.enqueue(k)
	}
}
