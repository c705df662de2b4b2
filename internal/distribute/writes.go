package distribute

import (
	"time"

	"github.com/warren-tenancy/warren/internal/copies"
)

// writes ask for the requests for one target after the other.
type writes struct {
	*core
	answers  *answers
	copies   *copyTable
	left     *leftCopies
	kinds    *kinds
	outcomes *outcomes
	plans    *plans
	runs     *runs
}

// startTarget plans one target, and asks for at most one write.
func (ws *writes) startTarget(k Key) {
	r := ws.runs.at(k.Distribution)
	if r == nil {
		ws.left.startKey(k)
		return
	}
	if w, ok := ws.planWrite(r, k); ok && !ws.waitsForShare(w) && !ws.waitsInLoop(w) {
		w.flight = ws.copies.begin(w.Slot)
		ws.emitOutput(w)
		return
	}
	ws.reviewSoon(r.Name)
}

// planWrite takes a target off the queue and plans it; ok is false where nothing is to be written now.
func (ws *writes) planWrite(r *run, key Key) (w WriteCopy, ok bool) {
	ws.takeTarget(key)
	if !r.Distributes() || !ws.listed {
		return w, false
	}
	k, namespace := ws.kinds.findKind(r.Template.Kind.GroupKind()), key.Namespace
	if k.state != copies.KindActive {
		return w, false
	}
	if !r.gate.isOpen(r.Distribution) {
		return w, false // the review comes first, and queues this target again
	}
	plan := ws.plans.planAt(r, namespace)
	if plan.Verb == Nothing {
		r.troubles.clearTrouble(namespace)
		return w, false
	}
	if wait := r.troubles.untilNext(namespace, ws.now); wait > 0 {
		ws.queueAfter(key, wait) // the queue has kept an earlier time than that of the last failure
		return w, false
	}
	return WriteCopy{
		Slot: r.Template.Slot(namespace), Resource: k.resource, Action: plan.Action, Copy: plan.copy,
		Distribution: r.Distribution, Confirm: plan.Verb == Create && r.troubles.hasVanished(namespace), by: r.Name, run: r,
	}, true
}

// waitsInLoop reports whether a restoring write must wait because somebody changes the copy in a loop. The target is
// queued for later then.
func (ws *writes) waitsInLoop(w WriteCopy) bool {
	wait := ws.outcomes.loopWait(w.run, w.Slot.Namespace, w.Action, w.Copy)
	if wait > 0 {
		ws.queueAfter(w.key(), wait)
	}
	return wait > 0
}

// shareRetry is the pause before a target is planned again that waits for the share of its namespace.
const shareRetry = 200 * time.Millisecond

// waitsForShare reports whether a new copy must wait, because no budget would limit it yet. The target is queued for later then.
func (ws *writes) waitsForShare(w WriteCopy) bool {
	if w.Action.Verb != Create || ws.options.AwaitsShare == nil || !ws.options.AwaitsShare(w.Slot.Namespace) {
		return false
	}
	w.run.troubles.holdUntil(w.Slot.Namespace, ws.now.Add(shareRetry))
	ws.queueAfter(w.key(), shareRetry)
	return true
}

// endWrite takes in the answer to a write, and decides what follows.
func (ws *writes) endWrite(c CopyWritten) {
	ws.answers.takeResult(c)
	r := ws.runs.at(c.by)
	switch {
	case r != c.run: // the distribution is another one now, or deleted: what was written for the old one is planned anew
		ws.queueKeys(c.key())
	case c.Err != nil && c.isOutdated(): // the present spec may succeed
		ws.queueKeys(c.key())
	case r != nil:
		ws.outcomes.recordWrite(r, c)
		ws.reviewSoon(r.Name)
	case c.Err != nil:
		ws.queueAfter(c.key(), ws.options.Timing.TransientMax)
	default:
		ws.left.startKey(c.key())
	}
}
