// Package distribute plans what must be written so that every target of a ResourceDistribution has its copy: targets and
// conflicts. The package is pure: it computes actions from the distribution, the forest of namespaces, the copies and the obstacles,
// and makes no requests. A slot is the place of one object: kind, namespace and name. A copy is the object that the operator writes
// into a target's slot; an obstacle is somebody else's object there.
package distribute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/text"
)

// Verb is what an action does.
type Verb int

// The verbs. Update writes the template over a copy. Remark replaces a copy's marks (the operator's label, annotations and
// ownerReference) and leaves its content. Inspect reads a whole copy that may have been changed while the operator didn't watch. Examine
// reads an obstacle, somebody else's object; Adopt makes it a copy without a change of its content, and Overwrite writes the template
// over it. HandBack removes all marks from an adopted object. Unlock removes only the annotation "locked", so that everybody with
// rights to the object may change it again.
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

// Plan returns the next action for one namespace: the first rule that applies decides. After a successful action the next plan is Nothing,
// with two exceptions. Inspect and Examine may lead to a write, and under driftPolicy Revert a write leads to an Inspect. mayCreate reports
// that missing copies may be created, because the check for conflicts has passed.
func (d *Distribution) Plan(t Target, mayCreate bool) Action {
	own := t.Copy != nil && t.Copy.Ours && t.Copy.By == d.Name
	switch {
	// A spec that can't be read asks for nothing, not even for removals; nor is anything done in a namespace that can't be judged.
	case d.Problem != "" || t.Choice == Frozen:
		return Action{}
	// The operator's own copies come before obstacles: only they may be removed, and a conflict elsewhere holds up none of them.
	case own && t.Choice == Unchosen:
		return d.planRemoval(t.Copy)
	case own:
		return d.planCopy(t.Copy)
	case t.Choice == Unchosen: // other objects count in targets alone
		return Action{}
	// Another distribution's copy, or an object that bears the label without being one, is never examined, adopted or overwritten.
	case t.Copy != nil:
		return Action{State: InConflict, Conflict: ofCopy(t.Copy)}
	case t.Obstacle != nil:
		return d.planObstacle(t.Obstacle, mayCreate)
	case mayCreate: // last, for it must be certain that nothing stands there
		return Action{Verb: Create, State: Missing}
	}
	return Action{State: Missing}
}

// placePlan is the plan of one namespace.
type placePlan struct {
	Action
	choice Choice
	copy   *Copy // the copy there; nil if there is none
}

// planAt plans one namespace.
func (s *State) planAt(r *run, namespace string) placePlan {
	t := Target{
		Namespace: namespace, Choice: r.Targets.Choose(s.forest, namespace, s.options.Protected, r.named),
		Copy: s.copies.At(r.Template.Slot(namespace)), Obstacle: s.obstacleAt(r, namespace),
	}
	return placePlan{r.Plan(t, r.mayCreate), t.Choice, t.Copy}
}

// obstacleAt returns the obstacle in a namespace; nil if none is known. Whether a Covered object is a source of propagation is decided here
// rather than where the object was read, because its namespace can join or leave a tree while the object stays the same.
func (s *State) obstacleAt(r *run, namespace string) *Obstacle {
	o := r.obstacles[namespace]
	if o == nil || !o.Covered || !s.forest.Place(namespace).InTree() {
		return o
	}
	source := *o
	source.Reason, source.By = v1alpha1.ReasonPropagated, namespace
	return &source
}

// planRemoval plans for a copy in a namespace that isn't a target any more. It deletes only a copy with the ownerReference; a copy
// that an earlier deletionPolicy Orphan has left without one stays.
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

// planCopy plans for a target that has a copy of d.
func (d *Distribution) planCopy(c *Copy) Action {
	if c.Terminating {
		return Action{State: InConflict, Conflict: &Obstacle{UID: c.UID, ResourceVersion: c.ResourceVersion, Reason: v1alpha1.ReasonBeingDeleted}}
	}
	revert := d.Drift == v1alpha1.DriftRevert
	marked := d.marked(c)
	switch {
	case c.Content != d.Template.Content:
		return Action{Verb: Update, State: Outdated}
	case revert && (c.Drifted || !marked):
		return Action{Verb: Update, State: Outdated}
	case !marked:
		return Action{Verb: Remark, State: Current}
	case revert && !c.Known:
		return Action{Verb: Inspect, State: Current}
	}
	return Action{State: Current}
}

// marked reports whether a copy's ownerReference and lock are exactly as they should be.
func (d *Distribution) marked(c *Copy) bool {
	owner := ""
	if d.Deletion == v1alpha1.DeletionDelete && !c.Adopted {
		owner = d.UID
	}
	return c.Owner == owner && c.Locked == (d.Drift == v1alpha1.DriftRevert)
}

// planObstacle plans for a target whose slot has somebody else's object.
func (d *Distribution) planObstacle(o *Obstacle, mayCreate bool) Action {
	a := Action{State: InConflict, Conflict: o}
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
		a.Verb = Overwrite
	}
	return a
}

// Blocks reports whether a target keeps the check for conflicts from passing. d's own copy (ours) never does. unknown reports that an
// obstacle must be examined first.
func (d *Distribution) Blocks(a Action, ours bool) (blocks, unknown bool) {
	if a.State != InConflict || ours {
		return false, false
	}
	if d.Conflict == v1alpha1.ConflictAdoptIdentical && a.Conflict.Reason == v1alpha1.ReasonUnrelated {
		return a.Conflict.Examined && !a.Conflict.Identical, !a.Conflict.Examined
	}
	return true, false
}

// Farewell returns the action for a copy whose distribution is deleted. The garbage collector deletes copies with the
// ownerReference; all others stay, and are handed back or unlocked.
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

// Unmarked reports whether a copy of d has other marks than it should have. c may be nil.
func (d *Distribution) Unmarked(c *Copy) bool {
	return c != nil && c.Ours && c.By == d.Name && !c.Terminating && !d.marked(c)
}

// isRepair reports whether an action restores a copy that somebody changed, rather than applying a change of the distribution.
func (d *Distribution) isRepair(a Action, c *Copy) bool {
	return a.Verb == Update && c.Content == d.Template.Content
}

// Obstacle is somebody else's object in the slot of a copy.
type Obstacle struct {
	UID, ResourceVersion string
	Reason               v1alpha1.Reason
	// By names the object's controller, source namespace or ResourceDistribution, if it has one.
	By string
	// Examined reports that Reason is final for this resourceVersion. Either the object was read whole, or the API server refused to have it
	// adopted or overwritten because of its type or of an immutable field. Identical reports that its content is the template's.
	Examined, Identical bool
	// Covered reports that the object's kind has mode All, so that the object is a source while its namespace is in a tree. It is false for a
	// copy of propagation, for an object that is being deleted, and for one with the label `propagate`, which ReadObstacle judges.
	Covered bool
}

const byLength = 64 // most bytes in By

// ReadObstacle describes an object that is no copy as an Obstacle. source reports whether propagation copies the object to other
// namespaces.
func ReadObstacle(meta *metav1.PartialObjectMetadata, source bool) *Obstacle {
	o := &Obstacle{UID: string(meta.UID), ResourceVersion: meta.ResourceVersion, Reason: v1alpha1.ReasonUnrelated}
	controller := metav1.GetControllerOfNoCopy(meta)
	switch from := meta.Labels[v1alpha1.LabelInheritedFrom]; {
	case meta.DeletionTimestamp != nil:
		o.Reason = v1alpha1.ReasonBeingDeleted
	case from != "":
		o.Reason, o.By = v1alpha1.ReasonPropagated, from
	case source:
		o.Reason, o.By = v1alpha1.ReasonPropagated, meta.Namespace
	case controller != nil:
		o.Reason, o.By = v1alpha1.ReasonControlled, controller.Kind+"/"+controller.Name
	}
	o.By = text.Cut(o.By, byLength)
	return o
}

// unexamined returns the obstacle as it was before it was examined.
func (o *Obstacle) unexamined() *Obstacle {
	if !o.Examined {
		return o
	}
	before := *o
	before.Examined, before.Identical, before.Reason = false, false, v1alpha1.ReasonUnrelated
	return &before
}

// ofCopy describes an object with the label distributed-by as an Obstacle. It is a copy of another distribution, or not the operator's.
func ofCopy(c *Copy) *Obstacle {
	o := &Obstacle{UID: c.UID, ResourceVersion: c.ResourceVersion, Reason: v1alpha1.ReasonUnrelated}
	switch {
	case c.Terminating:
		o.Reason = v1alpha1.ReasonBeingDeleted
	case c.Ours:
		o.Reason, o.By = v1alpha1.ReasonDistributed, c.By
	}
	return o
}

// describeForOwner returns the message of the Event on an obstacle's object.
func describeForOwner(d *Distribution) string {
	return "ResourceDistribution " + d.Name + " can't write its " + d.Template.Kind.Kind + " here, because this object has its name. " +
		"The operator doesn't change this object: rename one of the two"
}
