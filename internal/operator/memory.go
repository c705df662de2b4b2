package operator

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryKeeper lets the heap grow during a burst of work, so that garbage is collected less often, and returns the freed
// memory to the operating system when the burst is over; without it the process would stay as large as at its peak. It
// implements manager.Runnable.
type memoryKeeper struct {
	interval time.Duration // between two checks of the heap
}

const (
	// quietAllocs is the most that a process at rest allocates between two looks, in bytes.
	quietAllocs = 8 << 20
	// minFreed is how much must have been allocated since memory was last returned before returning it again is worth its
	// cost, in bytes.
	minFreed = 8 << 20
	// minGarbage is the heap growth, in bytes, that never triggers a collection, however small the live heap is.
	minGarbage = 64 << 20
	// minPercent and maxPercent bound the garbage in percent of the live heap. GOMEMLIMIT bounds live heap and garbage together.
	minPercent, maxPercent = 100, 400
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (memoryKeeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (m memoryKeeper) Start(ctx context.Context) error {
	tick := time.NewTicker(m.interval)
	defer tick.Stop()
	lastAllocs, allocsAtReturn := uint64(0), uint64(0)
	for {
		debug.SetGCPercent(garbagePercent(readMetric("/gc/heap/live:bytes"), readMetric("/gc/scan/stack:bytes")+readMetric("/gc/scan/globals:bytes")))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		allocs := readMetric("/gc/heap/allocs:bytes") // since the process started
		if allocs-lastAllocs < quietAllocs && allocs-allocsAtReturn > minFreed {
			debug.FreeOSMemory()
			allocsAtReturn = allocs
		}
		lastAllocs = allocs
	}
}

// garbagePercent returns the percent to set for Go's collector, so that a live heap of that many bytes comes with as much garbage as the
// constants above allow. The collector takes its percent not only of the live heap, but also of what else it scans, in bytes: the stacks of
// thousands of watches are as large as their heap.
func garbagePercent(live, scanned uint64) int {
	garbage := max(live*minPercent/100, minGarbage)
	return int(min(maxPercent, garbage*100/max(live+scanned, 1))) //nolint:gosec // at most maxPercent
}

// readMetric returns the value of one of the metrics of package runtime/metrics.
func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
