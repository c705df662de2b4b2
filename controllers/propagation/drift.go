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

// repairs are the copies that were put right of late.
type repairs struct {
	*copying.Repairs
	mu    sync.Mutex                // guards found
	found map[propagate.Slot]string // how drift was found that waits to be put right, where the watch did not show it
}

func newRepairs() *repairs {
	return &repairs{Repairs: copying.NewRepairs(), found: map[propagate.Slot]string{}}
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
	if c.repairs.Note(slot, time.Now(), c.timing.LoopWindow) {
		c.notices.send(slot, uid, corev1.EventTypeWarning, v1alpha1.ReasonDriftLoop, fmt.Sprintf(
			"somebody changes this copy again and again; from now on it is put back once in %s: change the source, or stop who writes here", c.timing.LoopWindow))
	}
}
