package operator

import (
	"time"

	"github.com/warren-tenancy/warren/internal/memory"
)

const (
	// minGarbage is how many bytes of garbage a small live heap may have before a collection, unless maxPercent allows fewer.
	minGarbage = 64 << 20
	// minFreed is how many bytes must have been allocated, since memory was last given back, before it is given back again. Thousands of
	// watches allocate little by little, and their stacks shrink by half at each collection.
	minFreed = 2 << 20
	// minPercent is the garbage beside a large live heap, in percent of that heap, and maxPercent the most that garbagePercent returns.
	// GOMEMLIMIT bounds live heap and garbage together. Objects that survive a burst lie scattered among its garbage. With 400 %, a small
	// operator kept 6 MiB more of half empty memory for good.
	minPercent, maxPercent = 100, 150
)

// newMemoryKeeper lets the heap grow during a burst of work, so that garbage is collected less often, and returns the freed memory when
// the burst is over.
func newMemoryKeeper(interval time.Duration) memory.Keeper {
	return memory.Keeper{Interval: interval, QuietAllocs: 8 << 20, MinFreed: minFreed, GarbagePercent: func() int {
		return garbagePercent(memory.ReadMetric("/gc/heap/live:bytes"),
			memory.ReadMetric("/gc/scan/stack:bytes")+memory.ReadMetric("/gc/scan/globals:bytes"))
	}}
}

// garbagePercent returns the percent to set for Go's collector, so that live bytes of heap come with as much garbage as the constants
// above allow. The collector takes its percent not only of the live heap, but also of the stacks and globals that it scans: scanned bytes.
// The stacks of thousands of watches are as large as their heap.
func garbagePercent(live, scanned uint64) int {
	garbage := max(live*minPercent/100, minGarbage)
	return int(min(maxPercent, garbage*100/max(live+scanned, 1)))
}
