package distribute

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Verb is what an action does.
type Verb int

// The verbs. Update writes the template over a copy of ours. Remark writes our marks anew on what a copy holds, whatever
// that is. Inspect reads a copy that may have been changed while nobody watched. Examine reads somebody's object, Adopt
// takes it up as it is, and Overwrite writes the template over it. HandBack takes all our marks off an object that was
// there before; Unlock takes off only that the operator alone changes it.
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

// State is what a target looks like.
type State int

// The states. None is that of a namespace that is no target.
const (
	None State = iota
	Current
	Outdated
	Missing
	InConflict
)

// Gate is what a review of all targets together has decided.
type Gate struct {
	// Create says that copies may be made where none is: the check for conflicts has passed.
	Create bool
	// Updates are the copies that may be updated in the present batch; nil means all.
	Updates map[string]bool
	// Held are copies that keep what they have because of the partition.
	Held map[string]bool
}

func (g Gate) updates(namespace string) bool {
	return !g.Held[namespace] && (g.Updates == nil || g.Updates[namespace])
}

// Target is what is known of one namespace.
type Target struct {
	Namespace string
	Choice    Choice
	// Copy is the object of our kind and name with the label distributed-by, whoever wrote it.
	Copy *Copy
	// Obstacle is another object that is known to stand there.
	Obstacle *Obstacle
}

// Action is what takes one target from what stands there to what should.
type Action struct {
	Verb  Verb
	State State
	// Conflict is why State is InConflict.
	Conflict *Obstacle
}

// Plan says what to do in one namespace now. Planned again after the action, the answer is Nothing.
func (d *Distribution) Plan(t Target, gate Gate) Action {
	if d.Problem != "" || t.Choice == Frozen {
		return Action{}
	}
	if t.Copy != nil && t.Copy.Ours && t.Copy.By == d.Name {
		if t.Choice == Unchosen {
			return d.planRemoval(t.Copy)
		}
		return d.planCopy(t, gate)
	}
	if t.Choice == Unchosen {
		return Action{}
	}
	if t.Copy != nil {
		return Action{State: InConflict, Conflict: ofCopy(t.Copy)}
	}
	if t.Obstacle != nil {
		return d.planObstacle(t.Obstacle, gate)
	}
	if gate.Create {
		return Action{Verb: Create, State: Missing}
	}
	return Action{State: Missing}
}

// planRemoval plans for a copy in a namespace that is a target no longer. Only what bears the ownerReference goes: a copy
// that was once left behind stays.
func (d *Distribution) planRemoval(c *Copy) Action {
	switch {
	case c.Terminating:
		return Action{}
	case d.Deletion == v1alpha1.DeletionOrphan && c.Locked:
		return Action{Verb: Unlock}
	case d.Deletion == v1alpha1.DeletionOrphan:
		return Action{}
	case c.Adopted:
		return Action{Verb: HandBack}
	case c.Owner != "":
		return Action{Verb: Delete}
	case c.Locked:
		return Action{Verb: Unlock}
	}
	return Action{}
}

// planCopy plans for a copy of ours in a target.
func (d *Distribution) planCopy(t Target, gate Gate) Action {
	c := t.Copy
	if c.Terminating {
		return Action{State: InConflict, Conflict: &Obstacle{UID: c.UID, ResourceVersion: c.ResourceVersion, Reason: v1alpha1.ReasonBeingDeleted}}
	}
	revert := d.Drift == v1alpha1.DriftRevert
	marked := d.marked(c)
	switch {
	case c.Content != d.Template.Content && gate.updates(t.Namespace):
		return Action{Verb: Update, State: Outdated}
	case c.Content != d.Template.Content && !marked:
		return Action{Verb: Remark, State: Outdated}
	case c.Content != d.Template.Content:
		return Action{State: Outdated}
	case revert && (c.Drifted || !marked):
		return Action{Verb: Update, State: Outdated}
	case !marked:
		return Action{Verb: Remark, State: Current}
	case revert && !c.Known:
		return Action{Verb: Inspect, State: Current}
	}
	return Action{State: Current}
}

// marked says whether a copy bears the marks that it should.
func (d *Distribution) marked(c *Copy) bool {
	owner := ""
	if d.Deletion == v1alpha1.DeletionDelete && !c.Adopted {
		owner = d.UID
	}
	return c.Owner == owner && c.Locked == (d.Drift == v1alpha1.DriftRevert)
}

// planObstacle plans for a target in which somebody's object stands.
func (d *Distribution) planObstacle(o *Obstacle, gate Gate) Action {
	a := Action{State: InConflict, Conflict: o}
	if o.Reason != v1alpha1.ReasonUnrelated {
		return a
	}
	switch d.Conflict {
	case v1alpha1.ConflictAdoptIdentical:
		if !o.Examined {
			a.Verb = Examine
		} else if o.Identical && gate.Create {
			a.Verb = Adopt
		}
	case v1alpha1.ConflictOverwrite:
		a.Verb = Overwrite
	}
	return a
}

// Blocks says whether a target keeps the check for conflicts from passing. unknown says that it isn't known yet.
func (d *Distribution) Blocks(a Action, ours bool) (blocks, unknown bool) {
	if a.State != InConflict || ours {
		return false, false
	}
	if d.Conflict == v1alpha1.ConflictAdoptIdentical && a.Conflict.Reason == v1alpha1.ReasonUnrelated {
		return a.Conflict.Examined && !a.Conflict.Identical, !a.Conflict.Examined
	}
	return true, false
}

// Farewell plans for a copy whose distribution is gone. The garbage collector removes what bears the ownerReference;
// everything else stays.
func Farewell(c *Copy) Verb {
	switch {
	case !c.Ours || c.Terminating:
		return Nothing
	case c.Adopted:
		return HandBack
	case c.Locked && c.Owner == "":
		return Unlock
	}
	return Nothing
}

// Unmarked says whether a copy of ours lacks marks that it should bear.
func (d *Distribution) Unmarked(c *Copy) bool {
	return c != nil && c.Ours && c.By == d.Name && !c.Terminating && !d.marked(c)
}
