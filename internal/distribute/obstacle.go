package distribute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/text"
)

// Obstacle is somebody else's object in the slot of a copy.
type Obstacle struct {
	UID, ResourceVersion string
	Reason               v1alpha1.Reason
	// By names the object's controller, source namespace or ResourceDistribution, if it has one.
	By string
	// Examined says that the object was read whole, or that the API server refused to overwrite it: Reason is final for this
	// resourceVersion. Identical says that its content is the template's.
	Examined, Identical bool
}

const byLength = 64 // of the text in By, in bytes

// ReadObstacle returns the obstacle that an object is for a distribution of which it is no copy. source says whether propagation
// copies the object to other namespaces.
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

// ofCopy returns the obstacle that an object with the label distributed-by is for a distribution of which it is no valid copy.
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
	return "ResourceDistribution " + d.Name + " is to put a " + d.Template.Kind.Kind + " of this name here, and leaves this one as it is: rename one of the two"
}
