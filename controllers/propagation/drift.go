package propagation

import (
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// loopLimit is how often a copy is put right within Timing.LoopWindow before somebody is taken to change it in a loop.
// From then on it is put right once in that time, until nobody has changed it for as long.
const loopLimit = 5

// repairs are the copies that were put right of late.
type repairs struct {
	mu     sync.Mutex // guards all below
	slots  map[propagate.Slot]*repair
	found  map[propagate.Slot]string // how drift was found that waits to be put right, where the watch did not show it
	pruned time.Time                 // when what is long past was last dropped: once in a window, as there may be very many
}

func newRepairs() *repairs {
	return &repairs{slots: map[propagate.Slot]*repair{}, found: map[propagate.Slot]string{}}
}

type repair struct {
	times []time.Time // the latest last, at most loopLimit
	loop  bool
}

func (r *repair) last() time.Time { return r.times[len(r.times)-1] }

// note adds a repair, and says whether it makes a loop of those before it.
func (r *repairs) note(slot propagate.Slot, now time.Time, window time.Duration) (loop bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	past := func(known *repair) bool { return now.Sub(known.last()) >= 2*window }
	if now.Sub(r.pruned) >= window {
		maps.DeleteFunc(r.slots, func(_ propagate.Slot, known *repair) bool { return past(known) })
		r.pruned = now
	}
	known := r.slots[slot]
	if known == nil || past(known) {
		known = &repair{}
		r.slots[slot] = known
	}
	was := known.loop
	known.times = append(known.times, now)
	if known.times = known.times[max(0, len(known.times)-loopLimit):]; len(known.times) == loopLimit {
		known.loop = was || now.Sub(known.times[0]) < window
	}
	return known.loop && !was
}

// wait is how long a copy is left as it is.
func (r *repairs) wait(slot propagate.Slot, now time.Time, window time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.slots[slot]; known != nil && known.loop {
		return max(0, known.last().Add(window).Sub(now))
	}
	return 0
}

// How drift was found, where the watch did not show it; a label of a metric.
const (
	foundByWatch = "watch"
	foundAtStart = "start"
	foundByScrub = "scrub"
)

// isRepair says whether a PUT puts back what somebody changed, rather than following the source.
func isRepair(over *propagate.Copy, action propagate.Action) bool {
	return (over.Drifted || over.Marked) && over.Hash == action.Hash
}

// noteFound keeps how drift was found that is to be put right.
func (r *repairs) noteFound(slot propagate.Slot, how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[slot] = how
}

// takeFound is how the drift was found that was put right.
func (r *repairs) takeFound(slot propagate.Slot) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	how, ok := r.found[slot]
	if !ok {
		return foundByWatch
	}
	delete(r.found, slot)
	return how
}

// reportRepair tells of drift that was put right, and of the first time that it was too often.
func (c *copies) reportRepair(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	drift.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, c.repairs.takeFound(slot)).Inc()
	uid := string(meta.UID)
	c.notices.send(slot, uid, corev1.EventTypeNormal, v1alpha1.ReasonDriftRepaired, "somebody changed this copy, and the operator put back what its source says: change the source instead")
	if c.repairs.note(slot, time.Now(), c.timing.LoopWindow) {
		c.notices.send(slot, uid, corev1.EventTypeWarning, v1alpha1.ReasonDriftLoop, fmt.Sprintf(
			"somebody changes this copy again and again; from now on it is put back once in %s: change the source, or stop who writes here", c.timing.LoopWindow))
	}
}
