package distribute

import v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"

// Verb is what an action does.
type Verb int

// The verbs. Update writes the template over a copy. Remark replaces a copy's marks (the operator's label, annotations
// and ownerReference) and leaves its content. Inspect reads a whole copy that may have been changed while the operator
// didn't watch. Examine reads an obstacle, somebody else's object; Adopt makes it a copy without a change of its
// content, and Overwrite writes the template over it. HandBack removes all marks from an adopted object. Unlock removes
// only the annotation "locked", so that everybody with rights to the object may change it again.
const (
	Nothing Verb = iota
	Create
	Update
	Remark
	Inspect
	Examine
	Adopt
	Overwrite
	Delete
	HandBack
	Unlock
)

// TargetState describes how a target's object compares to the template.
type TargetState int

// The states. None is the state of a namespace that is no target.
const (
	None TargetState = iota
	Current
	Outdated
	Missing
	InConflict
)

// Target is one namespace, and the object in the slot of its copy.
type Target struct {
	Namespace string
	Choice    Choice
	// Copy is the object of the template's kind and name if it has the label distributed-by, whoever wrote it.
	Copy *Copy
	// Obstacle is an object without the label distributed-by in the slot; nil if none is known.
	Obstacle *Obstacle
}

// Action is the next step for one target, and the target's state before that step.
type Action struct {
	Verb  Verb
	State TargetState
	// Conflict is why State is InConflict.
	Conflict *Obstacle
}

// Plan returns the next action for one namespace: the first rule that applies decides. After a successful action the
// next plan is Nothing, with two exceptions. Inspect and Examine may lead to a write, and under driftPolicy Revert a
// write leads to an Inspect. mayCreate reports that missing copies may be created, because the check for conflicts has
// passed.
func (d *Distribution) Plan(t Target, mayCreate bool) Action {
	own := d.isOwn(t.Copy)
	switch {
	// A spec that can't be read asks for nothing, not even for removals; nor is anything done in a namespace that can't
	// be judged.
	case d.Problem != "" || t.Choice == Frozen:
		return Action{}
	// The operator's own copies come before obstacles: only they may be removed, and a conflict elsewhere holds up none
	// of them.
	case own && t.Choice == Unchosen:
		return d.planRemoval(t.Copy)
	case own:
		return d.planCopy(t.Copy)
	case t.Choice == Unchosen: // other objects count in targets alone
		return Action{}
	// Another distribution's copy, or an object that bears the label without being one, is never examined, adopted or
	// overwritten.
	case t.Copy != nil:
		return Action{State: InConflict, Conflict: ofCopy(t.Copy)}
	case t.Obstacle != nil:
		return d.planObstacle(t.Obstacle, mayCreate)
	case mayCreate: // last, for it must be certain that nothing stands there
		return Action{Verb: Create, State: Missing}
	}
	return Action{State: Missing}
}

// isOwn reports whether c, which may be nil, is a copy of d.
func (d *Distribution) isOwn(c *Copy) bool { return c != nil && c.Ours && c.By == d.Name }

// planRemoval plans for a copy in a namespace that isn't a target any more.
func (d *Distribution) planRemoval(c *Copy) Action {
	switch {
	case c.Terminating:
		return Action{}
	// Under Orphan every copy stays, and a copy that nobody maintains any more must not stay locked.
	case d.Deletion == v1alpha1.DeletionOrphan && c.Locked:
		return Action{Verb: Unlock}
	case d.Deletion == v1alpha1.DeletionOrphan:
		return Action{}
	case c.Adopted:
		return Action{Verb: HandBack}
	// A copy that an earlier deletionPolicy Orphan has left without ownerReference stays.
	case c.Owner != "":
		return Action{Verb: Delete}
	case c.Locked:
		return Action{Verb: Unlock}
	}
	return Action{}
}

// planCopy plans for a target that has a copy of d.
func (d *Distribution) planCopy(c *Copy) Action {
	if c.Terminating {
		return Action{State: InConflict, Conflict: &Obstacle{UID: c.UID, ResourceVersion: c.ResourceVersion, Reason: v1alpha1.ReasonBeingDeleted}}
	}
	revert := d.Drift == v1alpha1.DriftRevert
	marked := d.isMarked(c)
	switch {
	case c.Content != d.Template.Content:
		return Action{Verb: Update, State: Outdated}
	case revert && (c.Drifted || !marked):
		return Action{Verb: Update, State: Outdated}
	case !marked:
		return Action{Verb: Remark, State: Current}
	// After a start, metadata can't show that a copy is as it was written, so it is read whole once.
	case revert && !c.Known:
		return Action{Verb: Inspect, State: Current}
	}
	return Action{State: Current}
}

// isMarked reports whether a copy's ownerReference and lock are exactly as they should be.
func (d *Distribution) isMarked(c *Copy) bool {
	owner := ""
	if d.Deletion == v1alpha1.DeletionDelete && !c.Adopted {
		owner = d.UID
	}
	return c.Owner == owner && c.Locked == (d.Drift == v1alpha1.DriftRevert)
}

// planObstacle plans for a target whose slot has somebody else's object.
func (d *Distribution) planObstacle(o *Obstacle, mayCreate bool) Action {
	a := Action{State: InConflict, Conflict: o}
	// An object that is owned, propagated or being deleted is never taken over (DIST-D32).
	if o.Reason != v1alpha1.ReasonUnrelated {
		return a
	}
	switch d.Conflict {
	case v1alpha1.ConflictAdoptIdentical:
		if !o.Examined {
			a.Verb = Examine
		} else if o.Identical && mayCreate {
			a.Verb = Adopt
		}
	case v1alpha1.ConflictOverwrite:
		// Overwrite needs no check for conflicts (DIST-D31).
		a.Verb = Overwrite
	}
	return a
}

// Blocks reports whether a target keeps the check for conflicts from passing. d's own copy (ours) never does. unknown
// reports that an obstacle must be examined first.
func (d *Distribution) Blocks(a Action, ours bool) (blocks, unknown bool) {
	if a.State != InConflict || ours {
		return false, false
	}
	if d.Conflict == v1alpha1.ConflictAdoptIdentical && a.Conflict.Reason == v1alpha1.ReasonUnrelated {
		return a.Conflict.Examined && !a.Conflict.Identical, !a.Conflict.Examined
	}
	return true, false
}

// PlanLeft returns the action for a copy whose distribution is deleted. Copies without ownerReference stay, and are
// handed back or unlocked.
func PlanLeft(c *Copy) Verb {
	switch {
	case !c.Ours || c.Terminating:
		return Nothing
	case c.Adopted:
		return HandBack
	// The garbage collector deletes a copy with the ownerReference.
	case c.Locked && c.Owner == "":
		return Unlock
	}
	return Nothing
}

// Unmarked reports whether a copy of d has other marks than it should have. c may be nil.
func (d *Distribution) Unmarked(c *Copy) bool {
	return d.isOwn(c) && !c.Terminating && !d.isMarked(c)
}

// isRepair reports whether an action restores a copy that somebody changed, rather than applying a change of the
// distribution.
func (d *Distribution) isRepair(a Action, c *Copy) bool {
	return a.Verb == Update && c.Content == d.Template.Content
}
