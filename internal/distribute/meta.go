package distribute

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// ChangeMeta changes the metadata of an object as the API server returned it, and leaves the rest as it is.
func ChangeMeta(object map[string]any, change func(*metav1.ObjectMeta)) error {
	meta, err := metaOf(object)
	if err != nil {
		return err
	}
	change(meta)
	meta.ManagedFields = nil // absent ones are kept
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

// HandBackMeta takes all our marks off.
func HandBackMeta(meta *metav1.ObjectMeta) {
	reserved := func(key, _ string) bool { return v1alpha1.IsReservedKey(key) }
	maps.DeleteFunc(meta.Labels, reserved)
	maps.DeleteFunc(meta.Annotations, reserved)
	dropOwner(meta)
}

// UnlockMeta takes off that the operator alone changes the object.
func UnlockMeta(meta *metav1.ObjectMeta) { delete(meta.Annotations, v1alpha1.AnnotationLocked) }

func dropOwner(meta *metav1.ObjectMeta) {
	meta.OwnerReferences = slices.DeleteFunc(meta.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == Kind && r.APIVersion == v1alpha1.GroupVersion.String()
	})
}

// Remark puts the marks on a copy that it should bear. Its content, and the hash of that, stay.
func (d *Distribution) Remark(meta *metav1.ObjectMeta, c *Copy) {
	UnlockMeta(meta)
	dropOwner(meta)
	setMarks(meta, d.marks(meta.Namespace, c.Adopted, c.Content))
}

// Adopt makes an identical object a copy: the template's labels and annotations come, and our marks.
func (d *Distribution) Adopt(meta *metav1.ObjectMeta) {
	labels, annotations := d.Template.Metadata()
	setMarks(meta, propagate.Marks{Labels: labels, Annotations: annotations})
	setMarks(meta, d.Marks(meta.Namespace, true))
}

func setMarks(meta *metav1.ObjectMeta, marks propagate.Marks) {
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

// MetaHolds says whether a copy still has the template's labels and annotations.
func (d *Distribution) MetaHolds(object map[string]any) bool {
	meta, err := metaOf(object)
	if err != nil {
		return false
	}
	labels, annotations := d.Template.Metadata()
	return holdsAll(meta.Labels, labels) && holdsAll(meta.Annotations, annotations)
}

func holdsAll(there, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := there[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// OverStranger is somebody's object as a write over it needs it: all that it bears stays.
func OverStranger(meta *metav1.PartialObjectMetadata, t *Template) *propagate.Copy {
	unreserved := func(all map[string]string) map[string]string {
		kept := maps.Clone(all)
		maps.DeleteFunc(kept, func(key, _ string) bool { return v1alpha1.IsReservedKey(key) })
		return kept
	}
	stranger := Copy{UID: string(meta.UID), ResourceVersion: meta.ResourceVersion}
	stranger.Kept = &propagate.Kept{
		Finalizers: meta.Finalizers, OwnerReferences: meta.OwnerReferences,
		Labels: unreserved(meta.Labels), Annotations: unreserved(meta.Annotations),
	}
	return stranger.Over(t)
}
