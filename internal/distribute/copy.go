package distribute

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
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
	// Digest is a hash of who owns which content field, and of the labels and annotations that the operator owns. If it differs
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

// owned describes the fields that one entry of managedFields owns.
type owned struct {
	labels, annotations map[string]bool
	content             bool   // anything but metadata and status
	text                string // of the content
}

// Reader reads copies from metadata. It caches parsed entries of managedFields, because all copies of a template have the same ones.
type Reader struct{ memo *lru.Cache[string, *owned] }

// NewReader returns a Reader.
func NewReader() *Reader {
	memo, _ := lru.New[string, *owned](256) // fails for a size of 0 only
	return &Reader{memo}
}

const memoText = 4096 // bytes; longer entries are not cached

// Copy returns the object in slot as a Copy, by its metadata.
func (r *Reader) Copy(slot copies.Slot, meta *metav1.PartialObjectMetadata) *Copy {
	hash := copies.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	c := &Copy{
		UID: string(meta.UID), ResourceVersion: meta.ResourceVersion,
		By: meta.Labels[v1alpha1.LabelDistributedBy], Content: hash.Content,
		Terminating: meta.DeletionTimestamp != nil,
		Locked:      meta.Annotations[v1alpha1.AnnotationLocked] == v1alpha1.True,
		Adopted:     meta.Annotations[v1alpha1.AnnotationAdopted] == v1alpha1.True,
	}
	c.Ours = c.By != "" && hash.Mode != "" && hash.Place == copies.PlaceOf(slot, c.By)
	for _, reference := range meta.OwnerReferences {
		if isOwner(reference, c.By) {
			c.Owner = string(reference.UID)
		}
	}
	r.readFields(meta, c)
	return c
}

func isOwner(reference metav1.OwnerReference, by string) bool {
	return reference.Kind == Kind && reference.APIVersion == v1alpha1.GroupVersion.String() && reference.Name == by
}

// readFields sets Foreign, Digest and Kept of c by the managedFields.
func (r *Reader) readFields(meta *metav1.PartialObjectMetadata, c *Copy) {
	mine := owned{}
	h := fnv.New64a()
	var others []string
	for _, entry := range meta.ManagedFields {
		fields := r.fields(entry)
		switch {
		case entry.Manager == v1alpha1.OperatorName && entry.Subresource == "":
			mine = *fields
			_, _ = io.WriteString(h, fields.text+"\x01")
		case fields.content:
			c.Foreign = true
			when := ""
			if entry.Time != nil {
				when = entry.Time.UTC().Format(time.RFC3339)
			}
			others = append(others, strings.Join([]string{entry.Manager, string(entry.Operation), when, fields.text}, "\x00"))
		}
	}
	slices.Sort(others)
	_, _ = io.WriteString(h, strings.Join(others, "\x01"))
	digestOwned(h, meta.Labels, mine.labels)
	digestOwned(h, meta.Annotations, mine.annotations)
	c.Digest = max(h.Sum64(), 1)
	k := &copies.Kept{Finalizers: meta.Finalizers, Labels: notOurs(meta.Labels, mine.labels, c.Adopted), Annotations: notOurs(meta.Annotations, mine.annotations, c.Adopted)}
	for _, reference := range meta.OwnerReferences {
		if !isOwner(reference, c.By) {
			k.OwnerReferences = append(k.OwnerReferences, reference)
		}
	}
	if len(k.Finalizers) > 0 || len(k.OwnerReferences) > 0 || len(k.Labels) > 0 || len(k.Annotations) > 0 {
		c.Kept = k
	}
}

func digestOwned(w io.Writer, all map[string]string, ours map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		_, _ = io.WriteString(w, key+"\x00"+all[key]+"\x01")
	}
}

// notOurs returns the entries that others added: the operator doesn't own them, and their keys are not reserved, unless the object was
// adopted and they say what its owner wants propagated.
func notOurs(all map[string]string, ours map[string]bool, adopted bool) map[string]string {
	var keys map[string]string
	for key, value := range all {
		if !ours[key] && (!v1alpha1.IsReservedKey(key) || adopted && !isOperators(key)) {
			if keys == nil {
				keys = map[string]string{}
			}
			keys[key] = value
		}
	}
	return keys
}

func (r *Reader) fields(entry metav1.ManagedFieldsEntry) *owned {
	if entry.FieldsV1 == nil || entry.Subresource == "status" {
		return &owned{}
	}
	raw := string(entry.FieldsV1.GetRawBytes())
	if known, ok := r.memo.Get(raw); ok && len(raw) <= memoText {
		return known
	}
	fields := parseFields(raw)
	if len(raw) <= memoText {
		r.memo.Add(raw, fields)
	}
	return fields
}

func parseFields(raw string) *owned {
	fields := map[string]any{}
	if json.Unmarshal([]byte(raw), &fields) != nil {
		return &owned{}
	}
	o := &owned{}
	if meta, ok := fields["f:metadata"].(map[string]any); ok {
		o.labels, o.annotations = ownedKeys(meta["f:labels"]), ownedKeys(meta["f:annotations"])
	}
	delete(fields, "f:metadata")
	delete(fields, "f:status")
	if o.content = len(fields) > 0; o.content {
		text, _ := json.Marshal(fields) // maps of maps: can't fail; keys come out sorted
		o.text = string(text)
	}
	return o
}

func ownedKeys(field any) map[string]bool {
	all, _ := field.(map[string]any)
	keys := make(map[string]bool, len(all))
	for key := range all {
		if bare, ok := strings.CutPrefix(key, "f:"); ok {
			keys[bare] = true
		}
	}
	return keys
}

// Marks returns the label, annotations and ownerReference of d's copy in a namespace. A copy that was adopted has no
// ownerReference, so that the object outlives d.
func (d *Distribution) Marks(namespace string, adopted bool) copies.Marks {
	return d.marks(namespace, adopted, d.Template.Content)
}

func (d *Distribution) marks(namespace string, adopted bool, content string) copies.Marks {
	hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(d.Template.Slot(namespace), d.Name), Content: content}
	m := copies.Marks{
		Labels:      map[string]string{v1alpha1.LabelDistributedBy: d.Name},
		Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash.String()},
	}
	if d.Drift == v1alpha1.DriftRevert {
		m.Annotations[v1alpha1.AnnotationLocked] = v1alpha1.True
	}
	switch {
	case adopted:
		m.Annotations[v1alpha1.AnnotationAdopted] = v1alpha1.True
	case d.Deletion == v1alpha1.DeletionDelete:
		m.OwnerReferences = []metav1.OwnerReference{d.Reference()}
	}
	return m
}
