package distribute

import (
	"time"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// core is what all parts share: the options, the forest, what waits in the queue, and the Input that is being applied.
type core struct {
	options Options
	forest  *forest.Snapshot
	now     time.Time       // of that Input
	out     []copies.Output // its Outputs
	listed  bool            // all ResourceDistributions are known: nothing is written before
	leading bool            // this replica leads
	work    map[string]*openWork
}

// openWork is what waits in the queue for one ResourceDistribution. There is none for one that is deleted.
type openWork struct {
	targets  map[string]bool // by namespace
	reviewAt time.Time       // when a review is due that was put off
}

// nameOf returns the forest's own string for a namespace's name, so that equal names share memory; the given string if
// the forest lacks it.
func (c *core) nameOf(namespace string) string {
	if n := c.forest.Namespace(namespace); n != nil {
		return n.Name
	}
	return namespace
}

// recordListed records that all ResourceDistributions are known.
func (c *core) recordListed() { c.listed = true }

func (c *core) emitOutput(one Output) { c.out = append(c.out, one) }

// takeOutputs returns the Outputs, and forgets them.
func (c *core) takeOutputs() []Output {
	all := c.out
	c.out = nil
	return all
}

// queueKeys queues keys if this replica leads. Until a worker takes them their targets are open: no review queues them
// a second time.
func (c *core) queueKeys(keys ...Key) {
	if !c.leading || len(keys) == 0 {
		return
	}
	for _, key := range keys {
		if w := c.work[key.Distribution]; w != nil && key.Namespace != "" {
			w.targets[key.Namespace] = true
		}
	}
	c.emitOutput(Queue{Keys: keys})
}

// queueAfter queues a key when some time has passed.
func (c *core) queueAfter(key Key, delay time.Duration) {
	c.emitOutput(Queue{Keys: []Key{key}, After: max(delay, 1)})
}

// reviewSoon queues a review of a distribution. It queues the review at once if no target of the distribution is
// queued. Otherwise it queues the review after Timing.Pace, unless a review is due already.
func (c *core) reviewSoon(distribution string) {
	switch w := c.work[distribution]; {
	// No target is queued, so this review sees the end of the rollout.
	case len(w.targets) == 0:
		c.queueKeys(reviewKey(distribution))
	case w.reviewAt.IsZero() || c.now.After(w.reviewAt):
		w.reviewAt = c.now.Add(c.options.Timing.Pace)
		c.queueAfter(reviewKey(distribution), c.options.Timing.Pace)
	}
}

// beginWork records that nothing waits in the queue for a new distribution; endWork, that it is deleted.
func (c *core) beginWork(distribution string) {
	c.work[distribution] = &openWork{targets: map[string]bool{}}
}
func (c *core) endWork(distribution string) { delete(c.work, distribution) }

// beginReview records that a review begins, so that another one may be put off.
func (c *core) beginReview(distribution string) { c.work[distribution].reviewAt = time.Time{} }

// isQueued reports whether a target waits in the queue.
func (c *core) isQueued(k Key) bool { return c.work[k.Distribution].targets[k.Namespace] }

// takeTarget records that a worker has taken a target from the queue.
func (c *core) takeTarget(k Key) {
	w := c.work[k.Distribution]
	if delete(w.targets, k.Namespace); len(w.targets) == 0 {
		w.targets = map[string]bool{} // a map that has been large keeps its memory
	}
}
