package distribution

import (
	"maps"
	"sync"
	"time"

	"github.com/warren-tenancy/warren/internal/distribute"
)

// trouble says why the last write of a target failed, and when the next one may be tried.
type trouble struct {
	failure *distribute.Failure // nil for an error that may pass without a change, such as a 503
	tries   int
	until   time.Time // nothing is tried before
}

// isPast says whether the target may be tried again.
func (t trouble) isPast(now time.Time) bool { return now.After(t.until) }

// troubles are the failed writes of one distribution's targets.
type troubles struct {
	mu      sync.Mutex // guards targets; while it is held, only the back-off is called, which takes no lock
	targets map[string]trouble
}

func newTroubles() *troubles { return &troubles{targets: map[string]trouble{}} }

// note counts one more failed try of a target, and puts it off for as long as backoff returns for the number of tries. A nil
// failure leaves an earlier failure in place.
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

// find returns the trouble of a target; ok is false if it has none.
func (t *troubles) find(namespace string) (known trouble, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok = t.targets[namespace]
	return known, ok
}

// all returns a copy of all troubles, by namespace.
func (t *troubles) all() map[string]trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.targets)
}

// clear removes the trouble of a target.
func (t *troubles) clear(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.targets, namespace)
}

// reset removes all troubles.
func (t *troubles) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.targets = map[string]trouble{}
}
