package copying

import (
	"context"
	"math/rand/v2"
	"time"
)

// Scrub is how often all copies are read whole, and how fast.
type Scrub struct {
	Interval         time.Duration // 0 switches it off
	ObjectsPerSecond int
}

// Passes begin the passes of the scrub, each of which compares all copies with their sources.
type Passes struct {
	Pace Scrub
	// Ready says whether the tables are complete.
	Ready func() bool
	// Unprotected says whether the ValidatingAdmissionPolicy is missing that forbids everybody else to change copies. While it is missing, a
	// pass comes at once, and then every hour.
	Unprotected func() bool
	// Tick is the time between two checks whether a pass is due.
	Tick time.Duration
}

// Run begins a pass whenever one is due, until ctx is done.
func (p Passes) Run(ctx context.Context, compareAll func(context.Context)) {
	started, share := time.Now(), rand.Float64()
	var last time.Time
	for {
		if due(started, last, share, p.Pace.Interval, p.Unprotected()) <= time.Since(started) && p.Ready() {
			compareAll(ctx)
			last = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.Tick):
		}
	}
}

const never = time.Duration(1<<63 - 1)

// due returns when, counted from the start, the next pass begins. The first pass comes after a random share of the interval, so that
// operators that are started together don't read together. While no policy protects the copies (unprotected), a pass comes at once, and then
// every hour.
func due(started, last time.Time, share float64, interval time.Duration, unprotected bool) time.Duration {
	switch {
	case interval == 0:
		return never
	case unprotected && last.IsZero():
		return 0
	case unprotected:
		return last.Sub(started) + min(interval, time.Hour)
	case last.IsZero():
		return time.Duration(share * float64(interval))
	}
	return last.Sub(started) + interval
}
