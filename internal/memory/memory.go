// Package memory bounds the garbage on the heap of a process, and returns memory to the operating system after a burst of work. Otherwise
// the process would stay as large as at its peak.
package memory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Keeper implements manager.Runnable. Amounts are in bytes.
type Keeper struct {
	// Interval is the time between two checks of the heap.
	Interval time.Duration
	// GarbagePercent returns the percent to set for Go's collector at each check.
	GarbagePercent func() int
	// QuietAllocs is the most that a process at rest allocates between two checks. Memory is returned only at rest. With 0, it is returned
	// in a burst, too.
	QuietAllocs uint64
	// MinFreed is how much must have been allocated since the last return of memory before another return is worth its cost.
	MinFreed uint64
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Keeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k Keeper) Start(ctx context.Context) error {
	lastAllocs, allocsAtReturn := uint64(0), uint64(0)
	wait.UntilWithContext(ctx, func(context.Context) {
		debug.SetGCPercent(k.GarbagePercent())
		allocs := ReadMetric("/gc/heap/allocs:bytes") // since the process started
		atRest := k.QuietAllocs == 0 || allocs-lastAllocs < k.QuietAllocs
		if atRest && allocs-allocsAtReturn > k.MinFreed {
			debug.FreeOSMemory()
			allocsAtReturn = allocs
		}
		lastAllocs = allocs
	}, k.Interval)
	return nil
}

// ReadMetric returns the value of one of the metrics of package runtime/metrics.
func ReadMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
