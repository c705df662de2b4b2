package exporter

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbagePercent is how much the heap may grow before a collection, in percent of the live heap. It is below Go's default of
	// 100 because the exporter has CPU time to spare and shares its node's memory with tenants.
	garbagePercent = 25
	// minFreed is how many bytes must have been allocated since memory was last returned to the system before it is returned again.
	minFreed = 4 << 20
)

// memoryKeeper keeps the heap's garbage small, and returns memory that a burst of work, such as a comparison, has taken to the
// system soon after. It implements manager.Runnable.
type memoryKeeper struct {
	interval time.Duration // between two checks of how much was allocated
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (memoryKeeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (m memoryKeeper) Start(ctx context.Context) error {
	debug.SetGCPercent(garbagePercent)
	tick := time.NewTicker(m.interval)
	defer tick.Stop()
	atReturn := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if allocated := allocatedBytes(); allocated-atReturn > minFreed {
			debug.FreeOSMemory()
			atReturn = allocated
		}
	}
}

// allocatedBytes is how much the process has allocated since it started.
func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
