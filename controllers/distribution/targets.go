package distribution

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// work is one target with what its write needs.
type work struct {
	run          *run                     // nil where the distribution is gone, as is distribution
	distribution *distribute.Distribution // as it was when this was planned
	slot         propagate.Slot
	resource     schema.GroupVersionResource
	action       distribute.Action
	copy         *distribute.Copy
}

func (w work) key() key { return key{w.run.name, w.slot.Namespace} }

// isRepair says whether a write puts back what somebody changed, rather than following the distribution.
func (w work) isRepair() bool {
	return w.action.Verb == distribute.Update && w.copy.Content == w.distribution.Template.Content
}

// seenVersion is the resourceVersion that was planned for.
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

// targets bring one namespace at a time to what it should be: plan, hold back what somebody changes in a loop, write.
type targets struct {
	*facts
	timing   Timing
	queue    *queue
	repairs  *copying.Repairs
	copier   *copier
	outcomes *outcomes
}

// writeTarget brings one namespace to what it should be, with one guarded write.
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

// holdBack leaves a copy that somebody changes in a loop as it is, until it is to be put back again.
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

// sayFarewell lets go of a copy whose distribution is gone.
func (t *targets) sayFarewell(ctx context.Context, k key) {
	if !t.runs.isSynced() || t.runs.find(k.distribution) != nil {
		return // in this order: once all are known, one that isn't found is gone
	}
	for slot, one := range t.copies.findIn(k.namespace, k.distribution) {
		kind, verb := t.kinds.find(slot.Kind), distribute.Farewell(one)
		if kind.state != kindActive || verb == distribute.Nothing {
			continue
		}
		w := work{slot: slot, resource: kind.resource, action: distribute.Action{Verb: verb}, copy: one}
		if err := t.copier.carryOut(ctx, w); err != nil {
			t.queue.AddAfter(k, t.timing.TransientMax)
		}
	}
}
