package distribute

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// ChangeMeta applies change to the metadata of an object as the API server returned it, and leaves all other fields.
func ChangeMeta(object map[string]any, change func(*metav1.ObjectMeta)) error {
	meta, err := metaOf(object)
	if err != nil {
		return err
	}
	change(meta)
	meta.ManagedFields = nil // the API server keeps them if a PUT has none
	data, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	changed := map[string]any{}
	if err := json.Unmarshal(data, &changed); err != nil {
		return err
	}
	object["metadata"] = changed
	return nil
}

func metaOf(object map[string]any) (*metav1.ObjectMeta, error) {
	data, err := json.Marshal(object["metadata"])
	if err != nil {
		return nil, err
	}
	meta := &metav1.ObjectMeta{}
	return meta, json.Unmarshal(data, meta)
}

// HandBackMeta removes all labels, annotations and ownerReferences of the operator, so that an adopted object is its former owner's
// again. What the owner says about propagation stays.
func HandBackMeta(meta *metav1.ObjectMeta) {
	operators := func(key, _ string) bool { return isOperators(key) }
	maps.DeleteFunc(meta.Labels, operators)
	maps.DeleteFunc(meta.Annotations, operators)
	dropOwner(meta)
}

// isOperators reports whether a label or annotation of an object is the operator's alone: it is reserved, and none of those by which
// the object's owner says what is propagated.
func isOperators(key string) bool {
	switch key {
	case v1alpha1.LabelPropagate, v1alpha1.AnnotationSelect, v1alpha1.AnnotationPropagateGenerated:
		return false
	}
	return v1alpha1.IsReservedKey(key)
}

// UnlockMeta removes the annotation by which only the operator may change the object.
func UnlockMeta(meta *metav1.ObjectMeta) { delete(meta.Annotations, v1alpha1.AnnotationLocked) }

func dropOwner(meta *metav1.ObjectMeta) {
	meta.OwnerReferences = slices.DeleteFunc(meta.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == Kind && r.APIVersion == v1alpha1.GroupVersion.String()
	})
}

// Remark replaces the copy's marks (label, annotations, ownerReference) by those that it should have now. The content and its hash stay.
func (d *Distribution) Remark(meta *metav1.ObjectMeta, c *Copy) {
	UnlockMeta(meta)
	dropOwner(meta)
	setMarks(meta, d.marks(meta.Namespace, c.Adopted, c.Content))
}

// Adopt makes an identical object a copy: it adds the template's labels and annotations, and the marks.
func (d *Distribution) Adopt(meta *metav1.ObjectMeta) {
	labels, annotations := d.Template.Metadata()
	setMarks(meta, copies.Marks{Labels: labels, Annotations: annotations})
	setMarks(meta, d.Marks(meta.Namespace, true))
}

func setMarks(meta *metav1.ObjectMeta, marks copies.Marks) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	maps.Copy(meta.Labels, marks.Labels)
	maps.Copy(meta.Annotations, marks.Annotations)
	meta.OwnerReferences = append(meta.OwnerReferences, marks.OwnerReferences...)
}

// Holds reports whether a copy, which was read whole, still has the template's content, labels and annotations. foreign says that another
// field manager owns content of it.
func (d *Distribution) Holds(object map[string]any, foreign bool) bool {
	meta, err := metaOf(object)
	if err != nil {
		return false
	}
	labels, annotations := d.Template.Metadata()
	return holdsAll(meta.Labels, labels) && holdsAll(meta.Annotations, annotations) && d.Template.Holds(object, foreign)
}

func holdsAll(there, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := there[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// OverStranger returns the values of somebody else's object that a PUT of the template over it must carry, so that its finalizers,
// ownerReferences, labels and annotations stay.
func OverStranger(meta *metav1.PartialObjectMetadata, t *Template) *copies.Copy {
	owners := func(all map[string]string) map[string]string {
		kept := maps.Clone(all)
		maps.DeleteFunc(kept, func(key, _ string) bool { return isOperators(key) })
		return kept
	}
	stranger := Copy{UID: string(meta.UID), ResourceVersion: meta.ResourceVersion}
	stranger.Kept = &copies.Kept{
		Finalizers: meta.Finalizers, OwnerReferences: meta.OwnerReferences,
		Labels: owners(meta.Labels), Annotations: owners(meta.Annotations),
	}
	return stranger.Over(t)
}
