package operator

import (
	"time"

	"github.com/warren-tenancy/warren/internal/memory"
)

const (
	// minGarbage is the heap growth, in bytes, that never triggers a collection, however small the live heap is.
	minGarbage = 64 << 20
	// minFreed is how many bytes must have been allocated at rest before they are collected and given back. Thousands of watches allocate
	// little by little, and their stacks shrink by half at each collection.
	minFreed = 2 << 20
	// minPercent and maxPercent bound the garbage in percent of the live heap. GOMEMLIMIT bounds live heap and garbage together. What survives
	// a burst lies scattered among its garbage: with 400 % a small operator kept 6 MiB more of half empty memory for good.
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

// garbagePercent returns the percent to set for Go's collector, so that a live heap of that many bytes comes with as much garbage as the
// constants above allow. The collector takes its percent not only of the live heap, but also of what else it scans, in bytes: the stacks of
// thousands of watches are as large as their heap.
func garbagePercent(live, scanned uint64) int {
	garbage := max(live*minPercent/100, minGarbage)
	return int(min(maxPercent, garbage*100/max(live+scanned, 1)))
}
