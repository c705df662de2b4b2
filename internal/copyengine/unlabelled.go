package copyengine

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// This file is about copies without their label inherited-from, as a watch of every object shows them.

// takeUnlabelled takes in a copy without its label inherited-from as a copy that has drifted, and reports whether the
// object is one. A watch of every object goes on to show such a copy, so that it can be repaired at once. In a watch of
// labelled objects it merely disappears, and the POST that follows finds it.
func (o *objects) takeUnlabelled(watch Watch, object *metav1.PartialObjectMetadata) bool {
	slot := watch.slotOf(object)
	delete(o.unplaced, slot)
	hash := copies.UnlabelledHash(object)
	if hash.Place == "" {
		return false
	}
	from := hash.FindSource(o.world.Forest, slot)
	// The forest may be ahead: the namespace has moved since.
	if known := o.world.Copies.At(slot); from == "" && known != nil && known.Ours && known.UID == string(object.UID) &&
		hash.Place == copies.PlaceOf(slot, known.From) {
		from = known.From
	}
	if from == "" {
		o.unplaced[slot] = o.settings.Rules.CopyOf(slot, object)
		return false
	}
	object = object.DeepCopy()
	metav1.SetMetaDataLabel(&object.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	o.takeCopy(watch, object)
	if known := o.world.Copies.At(slot); known != nil && known.ResourceVersion == object.ResourceVersion {
		known.Drifted = true
		o.world.PutCopy(slot, known)
	}
	o.dropSource(slot)
	return true
}

// placeUnlabelled takes in an unplaced object if the forest shows its source by now.
func (o *objects) placeUnlabelled(slot copies.Slot) {
	c := o.unplaced[slot]
	from := c.Hash.FindSource(o.world.Forest, slot)
	if from == "" {
		return
	}
	delete(o.unplaced, slot)
	if o.world.Copies.At(slot) == nil { // else an answer has shown a newer version
		c.From, c.Ours, c.Drifted = from, true, true
		o.putCopy(slot, c)
	}
}

// dropUnplaced is called for namespaces, or for Everywhere, of which a watch lists all objects anew, or shows no more.
func (o *objects) dropUnplaced(watch Watch, namespace string) {
	maps.DeleteFunc(o.unplaced, func(slot copies.Slot, _ *copies.Copy) bool {
		return slot.Kind == watch.Kind && (namespace == copies.Everywhere || slot.Namespace == namespace)
	})
}
