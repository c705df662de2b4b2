package distribution

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// runs are the known ResourceDistributions, and whether these are all.
type runs struct {
	mu       sync.Mutex // guards the fields below; nothing is called while it is held, so a caller may hold the lock of a run
	byName   map[string]*run
	synced   bool      // all ResourceDistributions are known
	served   bool      // the CRD exists
	servedAt time.Time // since when the CRD exists, or the present session watches it
}

func newRuns() *runs { return &runs{byName: map[string]*run{}} }

// find returns the run of a distribution; nil if there is none.
func (r *runs) find(name string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// list returns all runs.
func (r *runs) list() []*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byName))
}

// put adds a run, in place of the one of its name.
func (r *runs) put(one *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[one.name] = one
}

// remove removes the run of a distribution.
func (r *runs) remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, name)
}

// isSynced says whether all ResourceDistributions are known. Nothing is written before.
func (r *runs) isSynced() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.synced
}

// setSynced notes whether all ResourceDistributions are known.
func (r *runs) setSynced(synced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = synced
}

// setServed records whether the CRD exists from now on.
func (r *runs) setServed(served bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if served && !r.served {
		r.servedAt = now
	}
	r.served = served
}

// isServed says whether the CRD exists, and whether readiness must wait for ResourceDistributions, which it does for patience at most.
func (r *runs) isServed(now time.Time, patience time.Duration) (served, awaited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served, r.served && !r.synced && now.Sub(r.servedAt) < patience
}
