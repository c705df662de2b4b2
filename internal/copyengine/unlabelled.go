package copyengine

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/mirror"
)

// This file is about copies without their label inherited-from, as a watch of every object shows them.

// findUnlabelled returns the object with its label if it is a copy without its label inherited-from; nil for any other. A
// watch of every object goes on to show such a copy, so that it can be repaired at once. In a watch of labelled objects it
// merely disappears, and the POST that follows finds it.
func (o *objects) findUnlabelled(slot copies.Slot, object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	delete(o.unplaced, slot)
	hash := copies.UnlabelledHash(object)
	if hash.Place == "" {
		return nil
	}
	from := hash.FindSource(o.world.Forest, slot)
	// The forest may be ahead: the namespace has moved since.
	if known := o.world.Copies.At(slot); from == "" && known != nil && known.Ours && known.UID == string(object.UID) &&
		hash.Place == copies.PlaceOf(slot, known.From) {
		from = known.From
	}
	if from == "" {
		o.unplaced[slot] = o.settings.Rules.CopyOf(slot, object)
		return nil
	}
	object = object.DeepCopy()
	metav1.SetMetaDataLabel(&object.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	return object
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
		o.world.PutCopy(slot, c)
		o.noteCopy(slot, mirror.Change[copies.Copy]{Is: c})
	}
}

// dropUnplaced is called for namespaces, or for Everywhere, of which a watch lists all objects anew, or shows no more.
func (o *objects) dropUnplaced(watch Watch, namespace string) {
	maps.DeleteFunc(o.unplaced, func(slot copies.Slot, _ *copies.Copy) bool {
		return slot.Kind == watch.Kind && (namespace == copies.Everywhere || slot.Namespace == namespace)
	})
}
