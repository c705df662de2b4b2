package distribute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/text"
)

// Obstacle is somebody else's object in the slot of a copy.
type Obstacle struct {
	UID, ResourceVersion string
	Reason               v1alpha1.Reason
	// By names the object's controller, source namespace or ResourceDistribution, if it has one.
	By string
	// Examined reports that Reason is final for this resourceVersion. Either the object was read whole, or the API
	// server refused to have it adopted or overwritten because of its type or of an immutable field. Identical reports
	// that its content is the template's.
	Examined, Identical bool
	// Covered reports that the object's kind has mode All, so that the object is a source while its namespace is in a
	// tree. It is false for a copy of propagation, for an object that is being deleted, and for one with the label
	// `propagate`, which ReadObstacle judges.
	Covered bool
}

const byLength = 64 // most bytes in By

// ReadObstacle describes an object that is no copy as an Obstacle. source reports whether propagation copies the object
// to other namespaces.
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

// ofCopy describes an object with the label distributed-by as an Obstacle. It is a copy of another distribution, or not
// the operator's.
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

// settled returns the obstacle with a reason that is final for its resourceVersion: the API server refuses to have it
// taken over.
func (o Obstacle) settled(reason v1alpha1.Reason) Obstacle {
	o.Reason, o.Examined = reason, true
	return o
}

// examined returns the obstacle after it was read whole. identical reports that its content is the template's.
func (o Obstacle) examined(identical bool) Obstacle {
	if o.Examined, o.Identical = true, identical; !identical {
		o.Reason = v1alpha1.ReasonNotIdentical
	}
	return o
}

// asSource returns the obstacle as a source of propagation in its namespace.
func (o *Obstacle) asSource(namespace string) *Obstacle {
	source := *o
	source.Reason, source.By = v1alpha1.ReasonPropagated, namespace
	return &source
}

// readObstacle returns an object as an obstacle; nil if it has the label distributed-by, because the table of copies
// has such objects. covered reports whether a kind's propagation has mode All.
func readObstacle(covered func(schema.GroupKind) bool, gk schema.GroupKind, meta *metav1.PartialObjectMetadata) *Obstacle {
	if _, labelled := meta.Labels[v1alpha1.LabelDistributedBy]; labelled {
		return nil
	}
	mode, opted := meta.Labels[v1alpha1.LabelPropagate]
	o := ReadObstacle(meta, opted && mode != v1alpha1.ModeNone)
	o.Covered = !opted && covered(gk) && o.Reason != v1alpha1.ReasonBeingDeleted && o.Reason != v1alpha1.ReasonPropagated
	return o
}

// keepExamined returns known if it is the same version of the object as now, because known may have been examined; else
// now.
func keepExamined(known, now *Obstacle) *Obstacle {
	if known != nil && known.UID == now.UID && known.ResourceVersion == now.ResourceVersion {
		return known
	}
	return now
}
