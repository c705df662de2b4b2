package propagation

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// repairs remember which copies were put right lately, and how the drift of a copy was found that is still to be put right.
type repairs struct {
	*copying.Repairs
	mu    sync.Mutex                // guards found
	found map[propagate.Slot]string // how the drift was found, where the watch did not show it
}

func newRepairs() *repairs {
	return &repairs{Repairs: copying.NewRepairs(), found: map[propagate.Slot]string{}}
}

// How drift was found: the values of label found of the metric warren_propagation_drift_total.
const (
	foundByWatch = "watch"
	foundAtStart = "start"
	foundByScrub = "scrub"
)

// isRepair says whether a PUT puts back what somebody changed, rather than following the source.
func isRepair(over *propagate.Copy, action propagate.Action) bool {
	return (over.Drifted || over.Marked) && over.Hash == action.Hash
}

// noteFound keeps how the drift of the copy at slot was found, until takeFound is called.
func (r *repairs) noteFound(slot propagate.Slot, how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[slot] = how
}

// takeFound returns how the drift of the copy at slot was found, and forgets it.
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

// reportRepair counts a repair of drift, and sends Events about the repair and about the first one that makes a loop (see copying.Repairs).
func (c *copies) reportRepair(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	drift.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, c.repairs.takeFound(slot)).Inc()
	uid := string(meta.UID)
	c.notices.send(slot, uid, corev1.EventTypeNormal, v1alpha1.ReasonDriftRepaired, "somebody changed this copy, and the operator put back what its source says: change the source instead")
	if c.repairs.Note(slot, time.Now(), c.timing.LoopWindow) {
		c.notices.send(slot, uid, corev1.EventTypeWarning, v1alpha1.ReasonDriftLoop, fmt.Sprintf(
			"somebody changes this copy again and again; from now on it is put back once in %s: change the source, or stop who writes here", c.timing.LoopWindow))
	}
}
