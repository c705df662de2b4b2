package exporter

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbagePercent is how much garbage may stand beside what lives, in percent: the exporter has time, and shares its node with tenants.
	garbagePercent = 25
	// minFreed is how much must have been allocated since memory was last given back before that is worth a collection, in bytes.
	minFreed = 4 << 20
)

// memoryKeeper keeps garbage small, and gives the memory that a burst of work took, such as a comparison, back to the system soon
// after. It implements manager.Runnable.
type memoryKeeper struct {
	interval time.Duration // between two looks
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
