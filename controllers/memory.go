package controllers

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memory lets a burst of work leave garbage behind, which is collected less often then, and gives it back to the system
// afterwards: else the heap would stay as large. It implements manager.Runnable.
type memory struct {
	look time.Duration // how often it looks
}

const (
	// restful is how much a process at rest allocates at most between two looks, in bytes.
	restful = 8 << 20
	// worthwhile is how much must have been allocated since the last time, in bytes.
	worthwhile = 8 << 20
	// garbage is how much may always lie about, in bytes, be there ever so little besides.
	garbage = 64 << 20
	// usual and most bound the garbage in percent of what is in use; GOMEMLIMIT bounds both together.
	usual, most = 100, 400
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (memory) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (m memory) Start(ctx context.Context) error {
	tick := time.NewTicker(m.look)
	defer tick.Stop()
	before, given := uint64(0), uint64(0)
	for {
		debug.SetGCPercent(percent(read("/gc/heap/live:bytes")))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := read("/gc/heap/allocs:bytes") // ever
		if now-before < restful && now-given > worthwhile {
			debug.FreeOSMemory()
			given = now
		}
		before = now
	}
}

// percent is how much garbage may lie about beside so many bytes in use, in percent of those.
func percent(live uint64) int {
	return int(min(most, max(usual, garbage*100/max(live, 1)))) //nolint:gosec // between usual and most
}

// read is what the runtime tells of itself under that name.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
