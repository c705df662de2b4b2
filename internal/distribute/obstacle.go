package distribute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/text"
)

// Obstacle is somebody else's object where a copy should stand.
type Obstacle struct {
	UID, ResourceVersion string
	Reason               v1alpha1.Reason
	// By names who holds the place, where that is known.
	By string
	// Examined says that the object was read, or written over in vain: Reason is final for this resourceVersion. Identical
	// says that its data is the template's.
	Examined, Identical bool
}

const byLength = 128 // of the text in By, in bytes

// ReadObstacle takes an object that is not a copy of the distribution that wants its place. source says whether it is a
// source of propagation.
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

// ofCopy is the obstacle that an object with the label distributed-by makes for another distribution, or on another place.
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

// EventText is what stands in the Event of an Obstacle's object.
func EventText(d *Distribution) string {
	return "ResourceDistribution " + d.Name + " is to put a " + d.Template.Kind.Kind + " of this name here, and leaves this one as it is: rename one of the two"
}
