package distribution

import (
	"context"

	"golang.org/x/time/rate"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
)

// scrub reads every locked copy whole once per configured interval, on the leader, to find changes that the watched metadata doesn't show.
type scrub struct {
	*facts
	timing      Timing
	queue       *queue
	unprotected func() bool
}

// run starts a pass over all locked copies whenever one is due, until ctx is done.
func (s *scrub) run(ctx context.Context, ready func() bool) {
	passes := copying.Passes{
		Pace:  s.settings.Scrub,
		Ready: ready, Unprotected: s.unprotected, Tick: s.timing.ScrubTick,
	}
	passes.Run(ctx, func(ctx context.Context) {
		pace := s.settings.Scrub
		s.inspectAll(ctx, rate.NewLimiter(rate.Limit(pace.ObjectsPerSecond), max(1, pace.ObjectsPerSecond)))
	})
}

// inspectAll queues the copies of every distribution with driftPolicy Revert to be read whole, at the limiter's rate.
func (s *scrub) inspectAll(ctx context.Context, limiter *rate.Limiter) {
	for _, k := range s.findLocked() {
		if limiter.Wait(ctx) != nil {
			return
		}
		if r := s.runs.find(k.distribution); r != nil {
			if t := r.distribution().Template; t != nil {
				s.copies.forgetInspected(t.Slot(k.namespace))
			}
		}
		s.queue.add(k)
	}
}

// findLocked returns the keys of the locked copies: those that only the operator may change, by driftPolicy Revert.
func (s *scrub) findLocked() []key {
	var keys []key
	for _, r := range s.runs.list() {
		d := r.distribution()
		if d.Problem != "" || d.Drift != v1alpha1.DriftRevert {
			continue
		}
		for namespace, one := range s.copies.findFamily(d.Template.Family()) {
			if one.Ours && one.By == r.name {
				keys = append(keys, key{r.name, namespace})
			}
		}
	}
	return keys
}
