package distribution

import (
	"maps"
	"sync"
	"time"

	"github.com/warren-tenancy/warren/internal/distribute"
)

// trouble is what keeps a target from being what it should be.
type trouble struct {
	failure *distribute.Failure // nil for what passes by itself
	tries   int
	until   time.Time // nothing is tried before
}

// isPast says whether the target may be tried again.
func (t trouble) isPast(now time.Time) bool { return now.After(t.until) }

// troubles are what keeps the targets of one distribution from being what they should be.
type troubles struct {
	mu      sync.Mutex // guards targets; while it is held, nothing is called but the back-off, which only counts
	targets map[string]trouble
}

func newTroubles() *troubles { return &troubles{targets: map[string]trouble{}} }

// note counts one more try of a target that failed, which is put off for as long as backoff says of the number of tries. Where failure
// is nil, what is known of an earlier one stays.
func (t *troubles) note(namespace string, failure *distribute.Failure, backoff func(tries int) time.Duration) (delay time.Duration, tries int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.targets[namespace]
	known.tries++
	if failure != nil {
		known.failure = failure
	}
	delay = backoff(known.tries)
	known.until = time.Now().Add(delay)
	t.targets[namespace] = known
	return delay, known.tries
}

// find is the trouble of a target; ok is false if it has none.
func (t *troubles) find(namespace string) (known trouble, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok = t.targets[namespace]
	return known, ok
}

// all are the troubles at this moment, by namespace.
func (t *troubles) all() map[string]trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.targets)
}

// clear forgets the trouble of a target.
func (t *troubles) clear(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.targets, namespace)
}

// reset forgets all troubles.
func (t *troubles) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.targets = map[string]trouble{}
}
