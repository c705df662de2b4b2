package distribute

import v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"

// answers are what the requests for one target have shown. They are taken in, so that the next plan uses them before a
// watch shows it.
type answers struct {
	*core
	copies *copyTable
	runs   *runs
}

// takeResult records the result of the requests for one target. So the next plan uses it before the watch shows it.
func (a *answers) takeResult(c CopyWritten) {
	found := c.Answer
	if showsNoCopy := !found.Absent && found.Written == nil && found.Found == nil; showsNoCopy {
		a.copies.endFlight(c.Slot, c.flight)
	}
	switch {
	case found.Absent:
		a.takeAbsent(c, a.copies.takeAbsent(c.Slot, c.flight))
	case found.Written != nil && found.Written.Labels[v1alpha1.LabelDistributedBy] == "": // handed back
		a.takeAbsent(c, a.copies.takeReleased(c.Slot, c.flight))
	case found.Written != nil:
		a.takeWritten(c)
	case found.Found != nil:
		a.takeFound(c)
	case found.Deleted: // the copy is dropped when a watch shows that it is gone
		if known := a.copies.atUID(c.Slot, c.Copy.UID); known != nil {
			known.Terminating = true
			a.copies.Put(c.Slot, known)
		}
	case found.Compared && c.isOutdated(): // the plan for the present spec decides whether the object is read again
		a.queueKeys(c.key())
	case found.Compared && c.Action.Verb == Inspect:
		a.copies.changeCopy(c.Slot, c.Copy.UID, c.Copy.ResourceVersion, func(known *Copy) {
			known.Known, known.Drifted = true, known.Drifted || !found.Same
		})
		a.queueKeys(c.key()) // the next plan restores the copy if it has drifted
	case found.Compared:
		a.takeExamined(c)
	case c.Err == nil && c.Action.Verb == Create: // what was in the way has gone
		a.queueKeys(c.key())
	}
}

// takeAbsent removes the copy or the obstacle for which the write was planned, after the API server's answer that it is
// gone or no copy any more. A watch may have shown another object in the slot since. keys are those that the loss of the copy concerns.
func (a *answers) takeAbsent(c CopyWritten, keys []Key) {
	a.runs.queueVanished(keys)
	if c.run != nil && c.Action.Conflict != nil {
		c.run.obstacles.dropGone(c.Slot.Namespace, c.Action.Conflict.UID)
	}
}

// takeWritten takes in the copy that a write has left. No run has an older obstacle in its slot any more. Under driftPolicy
// Revert the target is queued to be read whole, because a mutating admission may have changed what was written, in the
// operator's name.
func (a *answers) takeWritten(c CopyWritten) {
	revert := c.Distribution != nil && c.Distribution.Drift == v1alpha1.DriftRevert
	if a.copies.takeWritten(c.Slot, c.flight, c.Answer.Written, !revert) {
		for name := range a.copies.findWanting(c.Slot) {
			if r := a.runs.at(name); r != nil {
				r.obstacles.dropOlder(c.Slot.Namespace, c.Answer.Written.ResourceVersion)
			}
			if name != c.by { // the copy is an obstacle of this distribution; no watch will show it again
				a.queueKeys(Key{name, c.Slot.Namespace})
			}
		}
	}
	if revert {
		a.queueKeys(c.key())
	}
}

// takeFound takes in the object that a create has found in its slot. It may be the copy after all, because an answer
// was lost or the watch is behind; otherwise it is an obstacle.
func (a *answers) takeFound(c CopyWritten) {
	o := readObstacle(a.options.Covered, c.Slot.Kind, c.Answer.Found)
	if o == nil {
		a.queueKeys(a.copies.takeFound(c.Slot, c.flight, c.Answer.Found)...)
		return
	}
	a.copies.endFlight(c.Slot, c.flight)
	if r := a.runs.at(c.by); r != nil && r == c.run && r.Problem == "" {
		if r.obstacles.isPast(c.Slot.Namespace, o) { // no watch would show again that it is gone
			a.queueAfter(c.key(), a.options.Timing.TransientMin)
			return
		}
		r.obstacles.setObstacle(c.Slot.Namespace, o)
		r.obstacles.keepWatch(r.Distribution)
	}
}

// takeExamined records whether an obstacle, which was read whole, is identical to the template.
func (a *answers) takeExamined(c CopyWritten) {
	c.run.obstacles.changeObstacle(c.Slot.Namespace, c.SeenVersion(), func(known Obstacle) Obstacle { return known.examined(c.Answer.Same) })
}
