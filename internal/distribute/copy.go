package distribute

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Kind is the kind of the objects that own copies.
const Kind = "ResourceDistribution"

// Copy is an object with the label distributed-by, as its metadata describes it.
type Copy struct {
	UID, ResourceVersion string
	// By is the ResourceDistribution that the label names. Ours says that the hash in the annotation was made for By and this slot;
	// without that, somebody else wrote the object.
	By   string
	Ours bool
	// Content is the content part of the hash.
	Content string
	// Owner is the UID in the ownerReference to By; "" where there is none.
	Owner                        string
	Terminating, Locked, Adopted bool
	// Foreign says that a field manager other than the operator owns content of the copy. After a start, that shows drift.
	Foreign bool
	// Digest is a hash of who owns which content field, and of the labels and annotations that the operator wrote. If it differs
	// from the digest after the operator's last write, the copy has drifted.
	Digest uint64
	// Known says that Digest was compared with the one after the operator's last write, Drifted that they differ. The caller that
	// stores copies sets both.
	Drifted, Known bool
	// Kept is the metadata that others added, and that a PUT must repeat to keep; nil for nearly all copies.
	Kept *copies.Kept
}

// Over returns the values of the copy that a PUT of the template over it must carry.
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

// dropKeys returns the entries of all whose keys ours lacks, because the template's value wins where both have a key.
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
			_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &written) // what can't be read names nothing
		}
	}
	in := func(keys map[string]struct{}) func(string) bool {
		return func(key string) bool { _, has := keys["f:"+key]; return has }
	}
	return copies.Keys{Label: in(written.Metadata.Labels), Annotation: in(written.Metadata.Annotations)}
}

// notOurs returns what reports whether others added a key, and may keep it: the operator did not write it, and it is not reserved, unless the
// object was adopted and the key says what its owner wants propagated.
func notOurs(ours func(string) bool, adopted bool) func(string) bool {
	return func(key string) bool {
		return !ours(key) && (!v1alpha1.IsReservedKey(key) || adopted && !isOperators(key))
	}
}
