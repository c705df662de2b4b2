package distribute

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Kind is the kind of the objects that own copies.
const Kind = "ResourceDistribution"

// Copy is an object with the label distributed-by, as its metadata describes it.
type Copy struct {
	UID, ResourceVersion string
	// By is the ResourceDistribution that the label names. Ours reports that the hash in the annotation was made for By
	// and this slot; without that, somebody else wrote the object.
	By   string
	Ours bool
	// Content is the content part of the hash.
	Content string
	// Owner is the UID in the ownerReference to By; "" where there is none.
	Owner                        string
	Terminating, Locked, Adopted bool
	// Foreign reports that a field manager other than the operator owns content of the copy. After a start, this is a
	// sign of drift.
	Foreign bool
	// Digest is a hash of who owns which content field, and of the labels and annotations that the operator wrote. If
	// it differs from the digest after the operator's last write, the copy has drifted.
	Digest uint64
	// Known reports that Digest was compared with the one after the operator's last write, Drifted that they differ.
	// The caller that stores copies sets both.
	Drifted, Known bool
	// Kept is the metadata that others added, and that a PUT must repeat to keep; nil for nearly all copies.
	Kept *copies.Kept
}

// Over returns what a PUT of the template over the copy must repeat: UID, resourceVersion, and the metadata that others
// added.
func (c *Copy) Over(t *Template) *copies.Copy {
	over := &copies.Copy{UID: c.UID, ResourceVersion: c.ResourceVersion}
	if c.Kept != nil {
		kept, ours := *c.Kept, t.Body
		labels, annotations := ours.Metadata()
		kept.Labels, kept.Annotations = dropKeys(kept.Labels, labels), dropKeys(kept.Annotations, annotations)
		over.Kept = &kept
	}
	return over
}

// dropKeys returns the entries of all, without those whose keys are in ours: the template's value wins where both have
// a key.
func dropKeys(all, ours map[string]string) map[string]string {
	left := maps.Clone(all)
	maps.DeleteFunc(left, func(key, _ string) bool { _, has := ours[key]; return has })
	return left
}

// Reader reads copies from metadata.
type Reader struct{ rules copies.Rules }

// NewReader returns a Reader.
func NewReader() *Reader {
	return &Reader{copies.Rules{ContentAlone: true, Memo: copies.NewMemo()}}
}

// Copy returns the object in slot as a Copy, by its metadata. What others add to its metadata is no drift.
func (r *Reader) Copy(slot copies.Slot, meta *metav1.PartialObjectMetadata) *Copy {
	hash := copies.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	ours := writtenKeys(meta)
	c := &Copy{
		UID: string(meta.UID), ResourceVersion: meta.ResourceVersion,
		By: meta.Labels[v1alpha1.LabelDistributedBy], Content: hash.Content,
		Terminating: meta.DeletionTimestamp != nil,
		Locked:      meta.Annotations[v1alpha1.AnnotationLocked] == v1alpha1.True,
		Adopted:     meta.Annotations[v1alpha1.AnnotationAdopted] == v1alpha1.True,
		Foreign:     r.rules.IsForeign(meta),
		Digest:      r.rules.DigestOf(meta, ours),
	}
	c.Ours = c.By != "" && hash.Mode != "" && hash.Place == copies.PlaceOf(slot, c.By)
	var owners []metav1.OwnerReference
	for _, reference := range meta.OwnerReferences {
		if isOwner(reference, c.By) {
			c.Owner = string(reference.UID)
		} else {
			owners = append(owners, reference)
		}
	}
	c.Kept = copies.KeptOf(meta, owners, copies.Keys{Label: notOurs(ours.Label, c.Adopted), Annotation: notOurs(ours.Annotation, c.Adopted)})
	return c
}

func isOwner(reference metav1.OwnerReference, by string) bool {
	return reference.Kind == Kind && reference.APIVersion == v1alpha1.GroupVersion.String() && reference.Name == by
}

// writtenKeys returns the keys that the operator wrote, as the managedFields tell.
func writtenKeys(meta *metav1.PartialObjectMetadata) copies.Keys {
	type fields struct {
		Metadata struct {
			Labels      map[string]struct{} `json:"f:labels"`
			Annotations map[string]struct{} `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	written := fields{}
	for _, entry := range meta.ManagedFields {
		if entry.Manager == v1alpha1.OperatorName && entry.Subresource == "" && entry.FieldsV1 != nil {
			_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &written) // fields that can't be read have no keys
		}
	}
	in := func(keys map[string]struct{}) func(string) bool {
		return func(key string) bool { _, has := keys["f:"+key]; return has }
	}
	return copies.Keys{Label: in(written.Metadata.Labels), Annotation: in(written.Metadata.Annotations)}
}

// notOurs returns a function that reports whether others added a key, and may keep it. The operator must not have
// written the key, and it must not be reserved. In an adopted object it may be reserved if it describes what the owner
// wants propagated.
func notOurs(ours func(string) bool, adopted bool) func(string) bool {
	return func(key string) bool {
		return !ours(key) && (!v1alpha1.IsReservedKey(key) || adopted && !isOperators(key))
	}
}

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

// HandBackMeta removes all labels, annotations and ownerReferences of the operator, so that an adopted object is its
// former owner's again. The owner's keys about propagation stay.
func HandBackMeta(meta *metav1.ObjectMeta) {
	operators := func(key, _ string) bool { return isOperators(key) }
	maps.DeleteFunc(meta.Labels, operators)
	maps.DeleteFunc(meta.Annotations, operators)
	dropOwner(meta)
}

// isOperators reports whether a label or annotation of an object is the operator's alone. It is reserved, and is none
// of those by which the object's owner describes what is propagated.
func isOperators(key string) bool {
	switch key {
	case v1alpha1.LabelPropagate, v1alpha1.AnnotationSelect, v1alpha1.AnnotationPropagateGenerated:
		return false
	}
	return v1alpha1.IsReservedKey(key)
}

// UnlockMeta removes the annotation "locked", so that everybody with rights to the object may change it again.
func UnlockMeta(meta *metav1.ObjectMeta) { delete(meta.Annotations, v1alpha1.AnnotationLocked) }

func dropOwner(meta *metav1.ObjectMeta) {
	meta.OwnerReferences = slices.DeleteFunc(meta.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == Kind && r.APIVersion == v1alpha1.GroupVersion.String()
	})
}

// Remark replaces the copy's marks (label, annotations, ownerReference) by those that it should have now. The content
// and its hash stay.
func (d *Distribution) Remark(meta *metav1.ObjectMeta, c *Copy) {
	UnlockMeta(meta)
	dropOwner(meta)
	setMarks(meta, d.buildMarks(meta.Namespace, c.Adopted, c.Content))
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

// Holds reports whether a copy, which was read whole, still has the template's content, labels and annotations. foreign
// reports that another field manager owns content of it.
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

// OverForeign returns what a PUT of the template over a foreign object must repeat: the object's finalizers and
// ownerReferences, and those labels and annotations that neither the operator nor the template sets.
func OverForeign(meta *metav1.PartialObjectMetadata, t *Template) *copies.Copy {
	owners := func(all map[string]string) map[string]string {
		kept := maps.Clone(all)
		maps.DeleteFunc(kept, func(key, _ string) bool { return isOperators(key) })
		return kept
	}
	foreign := Copy{UID: string(meta.UID), ResourceVersion: meta.ResourceVersion}
	foreign.Kept = &copies.Kept{
		Finalizers: meta.Finalizers, OwnerReferences: meta.OwnerReferences,
		Labels: owners(meta.Labels), Annotations: owners(meta.Annotations),
	}
	return foreign.Over(t)
}
