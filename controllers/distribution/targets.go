package distribution

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// work is one planned write.
type work struct {
	run          *run                     // nil for a deleted distribution, and so is the next field
	distribution *distribute.Distribution // as it was when this was planned
	slot         copies.Slot
	resource     schema.GroupVersionResource
	action       distribute.Action
	copy         *distribute.Copy
}

func (w work) key() key { return key{w.run.name, w.slot.Namespace} }

// isRepair says whether a write restores a copy that somebody changed, rather than applying a change of the distribution.
func (w work) isRepair() bool {
	return w.action.Verb == distribute.Update && w.copy.Content == w.distribution.Template.Content
}

// seenVersion returns the resourceVersion of the copy or obstacle that the write was planned for.
func (w work) seenVersion() string {
	if w.copy != nil {
		return w.copy.ResourceVersion
	}
	return w.action.Conflict.ResourceVersion
}

func resourceVersion(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	text, _ := meta["resourceVersion"].(string)
	return text
}

// targets plans and writes one target at a time, and puts off copies that somebody changes again and again.
type targets struct {
	*facts
	timing   Timing
	queue    *queue
	repairs  *copies.Repairs
	copier   *copier
	outcomes *outcomes
}

// writeTarget plans one target, and sends at most one write with a precondition.
func (t *targets) writeTarget(ctx context.Context, k key) {
	r := t.runs.find(k.distribution)
	if r == nil {
		t.sayFarewell(ctx, k)
		return
	}
	if w, ok := r.planWrite(t.facts, k.namespace); ok && !t.holdBack(w) {
		t.outcomes.note(w, t.copier.carryOut(ctx, w))
	}
	t.queue.reviewSoon(r)
}

// holdBack says whether a restoring write must wait because somebody changes the copy again and again. It queues the target for later then.
func (t *targets) holdBack(w work) bool {
	if !w.isRepair() {
		return false
	}
	wait := t.repairs.Wait(w.slot, time.Now(), t.timing.LoopWindow)
	if wait > 0 {
		t.queue.AddAfter(w.key(), wait)
	}
	return wait > 0
}

// sayFarewell deletes, hands back or unlocks the copies in one namespace that a deleted distribution has left.
func (t *targets) sayFarewell(ctx context.Context, k key) {
	if !t.runs.isSynced() || t.runs.find(k.distribution) != nil {
		return // in this order: once all are known, a distribution that isn't found is deleted
	}
	for slot, one := range t.copies.findIn(k.namespace, k.distribution) {
		kind, verb := t.kinds.find(slot.Kind), distribute.Farewell(one)
		if kind.state != copies.KindActive || verb == distribute.Nothing {
			continue
		}
		w := work{slot: slot, resource: kind.resource, action: distribute.Action{Verb: verb}, copy: one}
		if err := t.copier.carryOut(ctx, w); err != nil {
			t.queue.AddAfter(k, t.timing.TransientMax)
		}
	}
}
