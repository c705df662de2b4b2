package controllers

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memory gives back to the system what a burst of work has left behind: after a fan-out the heap is as large as the
// garbage that it made, and would stay so. It implements manager.Runnable.
type memory struct {
	look time.Duration // how often it looks
}

const (
	// restful is how much a process at rest allocates at most between two looks, in bytes.
	restful = 8 << 20
	// worthwhile is how much must have been allocated since the last time, in bytes.
	worthwhile = 32 << 20
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (memory) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (m memory) Start(ctx context.Context) error {
	tick := time.NewTicker(m.look)
	defer tick.Stop()
	before, given := uint64(0), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := allocated()
		if now-before < restful && now-given > worthwhile {
			debug.FreeOSMemory()
			given = now
		}
		before = now
	}
}

// allocated is all that the process has ever allocated on the heap, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
