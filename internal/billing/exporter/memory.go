package exporter

import (
	"time"

	"github.com/warren-tenancy/warren/internal/memory"
)

// garbagePercent is how much the heap may grow before a collection, in percent of the live heap. It is below Go's default of 100 because
// the exporter has CPU time to spare and shares its node's memory with tenants.
const garbagePercent = 25

// newMemoryKeeper keeps the heap's garbage small, and returns soon what a burst of work, such as a comparison, has taken.
func newMemoryKeeper() memory.Keeper {
	return memory.Keeper{Interval: 10 * time.Second, MinFreed: 4 << 20, GarbagePercent: func() int { return garbagePercent }}
}
