package copies

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
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// CopyOf reads a copy from its metadata. It leaves Digest 0: only the caller knows whether the operator wrote this
// version, and sets Digest then.
func (r Rules) CopyOf(slot Slot, meta *metav1.PartialObjectMetadata) *Copy {
	c := &Copy{
		UID: string(meta.UID), ResourceVersion: meta.ResourceVersion,
		From:        meta.Labels[v1alpha1.LabelInheritedFrom],
		Hash:        ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash]),
		Terminating: meta.DeletionTimestamp != nil,
		Meta:        digestMaps(r.selectWritten(meta.Labels, r.ExcludedLabel), r.selectWritten(meta.Annotations, r.ExcludedAnnotation)),
		Kept:        r.readKept(meta),
	}
	c.Ours = c.Hash.Mode != "" && c.Hash.Place == PlaceOf(slot, c.From)
	c.Marked = foreignMark(meta.Labels, v1alpha1.LabelInheritedFrom) || foreignMark(meta.Annotations, v1alpha1.AnnotationSourceHash)
	c.Access = slot.Kind.Kind == "RoleBinding" && meta.Labels[v1alpha1.LabelAccess] != ""
	c.Foreign = r.IsForeign(meta)
	return c
}

// foreignMark reports whether keys, the labels or annotations of a copy, have a reserved key that the operator writes
// on no copy. ours is the key that the operator writes on every copy.
func foreignMark(keys map[string]string, ours string) bool {
	for key := range keys {
		if v1alpha1.IsReservedKey(key) && key != ours && !marksAccess(key) {
			return true
		}
	}
	return false
}

// Keys selects labels and annotations of a copy by their keys. A nil function selects none.
type Keys struct{ Label, Annotation func(key string) bool }

func filterKeys(all map[string]string, match func(key string) bool) map[string]string {
	var matching map[string]string
	for key, value := range all {
		if match != nil && match(key) {
			if matching == nil {
				matching = map[string]string{}
			}
			matching[key] = value
		}
	}
	return matching
}

// excludedKeys returns the keys that others may add to copies and change there.
func (r Rules) excludedKeys() Keys {
	notReserved := func(match func(string) bool) func(string) bool {
		return func(key string) bool { return !v1alpha1.IsReservedKey(key) && match != nil && match(key) }
	}
	return Keys{notReserved(r.ExcludedLabel), notReserved(r.ExcludedAnnotation)}
}

func (r Rules) readKept(meta *metav1.PartialObjectMetadata) *Kept {
	return KeptOf(meta, meta.OwnerReferences, r.excludedKeys())
}

// KeptOf returns what a PUT over a copy must carry over: its finalizers, the ownerReferences owners, and the labels and
// annotations that theirs selects; nil if there is nothing.
func KeptOf(meta *metav1.PartialObjectMetadata, owners []metav1.OwnerReference, theirs Keys) *Kept {
	k := &Kept{
		Finalizers: meta.Finalizers, OwnerReferences: owners,
		Labels: filterKeys(meta.Labels, theirs.Label), Annotations: filterKeys(meta.Annotations, theirs.Annotation),
	}
	if len(k.Finalizers) == 0 && len(k.OwnerReferences) == 0 && k.Labels == nil && k.Annotations == nil {
		return nil
	}
	return k
}

// Digest is a hash of those parts of a copy's metadata whose change is drift: the labels and annotations, and which
// manager owns which field. It leaves out excluded keys, status, finalizers and ownerReferences. It is never 0.
//
// The resourceVersion alone does not show drift: each change of usage gives a copy of a ResourceQuota a new one, in an
// entry of managedFields with subresource status. Entries with subresource scale or status count too, because they can
// own more than status (PROP-F17). metadata.generation does not help: Secrets, ConfigMaps, Roles, RoleBindings,
// LimitRanges and ResourceQuotas have none.
func (r Rules) Digest(meta *metav1.PartialObjectMetadata) uint64 {
	theirs := r.excludedKeys()
	return r.DigestOf(meta, Keys{
		func(key string) bool { return !theirs.Label(key) },
		func(key string) bool { return !theirs.Annotation(key) },
	})
}

// DigestOf is Digest, but of the labels and annotations that ours selects.
func (r Rules) DigestOf(meta *metav1.PartialObjectMetadata, ours Keys) uint64 {
	h := fnv.New64a()
	digestMap(h, filterKeys(meta.Labels, ours.Label))
	digestMap(h, filterKeys(meta.Annotations, ours.Annotation))
	var entries []string
	for _, entry := range meta.ManagedFields {
		if fields := r.selectDriftFields(entry); fields != "" {
			// The time counts, because a new value changes only the time of an entry: its fields stay the same.
			when := ""
			if entry.Time != nil {
				when = entry.Time.UTC().Format(time.RFC3339)
			}
			entries = append(entries, strings.Join([]string{entry.Manager, string(entry.Operation), entry.Subresource, when, fields}, "\x00"))
		}
	}
	// The order of entries is the API server's, and no change of it is drift.
	slices.Sort(entries)
	for _, entry := range entries {
		_, _ = io.WriteString(h, entry+"\x01")
	}
	return max(h.Sum64(), 1)
}

// IsForeign reports whether a field manager other than the operator owns a field whose change is drift.
func (r Rules) IsForeign(meta *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(meta.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != v1alpha1.OperatorName && r.selectDriftFields(entry) != ""
	})
}

// Memo caches what Rules.selectDriftFields returns for the fields of an entry of managedFields, because all copies of a
// source have the same entries.
type Memo = lru.Cache[string, string]

// A Memo holds at most memoEntries entries; a text of more than memoText bytes is not kept.
const memoEntries, memoText = 256, 4096

// NewMemo returns an empty Memo.
func NewMemo() *Memo {
	memo, _ := lru.New[string, string](memoEntries) // fails for a size of 0 only
	return memo
}

// selectDriftFields returns, as canonical JSON, those fields of an entry of managedFields whose change is drift; "" if
// there are none.
func (r Rules) selectDriftFields(entry metav1.ManagedFieldsEntry) string {
	if entry.FieldsV1 == nil {
		return ""
	}
	raw := string(entry.FieldsV1.GetRawBytes())
	if r.Memo == nil || len(raw) > memoText {
		return r.relevantFields(raw)
	}
	if known, ok := r.Memo.Get(raw); ok {
		return known
	}
	fields := r.relevantFields(raw)
	r.Memo.Add(raw, fields)
	return fields
}

func (r Rules) relevantFields(raw string) string {
	fields := map[string]any{}
	if json.Unmarshal([]byte(raw), &fields) != nil {
		return ""
	}
	// A copy's status belongs to the controllers of its kind, and a PUT keeps it.
	delete(fields, "f:status")
	if r.ContentAlone {
		delete(fields, "f:metadata")
	}
	if meta, ok := fields["f:metadata"].(map[string]any); ok {
		// Others may add finalizers and owners to a copy: each PUT repeats them (see Kept).
		delete(meta, "f:finalizers")
		delete(meta, "f:ownerReferences")
		r.pruneFields(meta, "f:labels", r.ExcludedLabel)
		r.pruneFields(meta, "f:annotations", r.ExcludedAnnotation)
		if len(meta) == 0 {
			delete(fields, "f:metadata")
		}
	}
	if len(fields) == 0 {
		return ""
	}
	data, _ := json.Marshal(fields) // maps of maps: can't fail; keys come out sorted
	return string(data)
}

func (r Rules) pruneFields(meta map[string]any, field string, excluded func(string) bool) {
	keys, ok := meta[field].(map[string]any)
	if !ok {
		return
	}
	maps.DeleteFunc(keys, func(key string, _ any) bool {
		bare := strings.TrimPrefix(key, "f:")
		return key != "." && !v1alpha1.IsReservedKey(bare) && excluded != nil && excluded(bare)
	})
	if len(keys) == 0 || len(keys) == 1 && keys["."] != nil {
		delete(meta, field)
	}
}

func digestMaps(labels, annotations map[string]string) uint64 {
	h := fnv.New64a()
	digestMap(h, labels)
	digestMap(h, annotations)
	return h.Sum64()
}

func digestMap(w io.Writer, m map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		_, _ = io.WriteString(w, key+"\x00"+m[key]+"\x00")
	}
	_, _ = io.WriteString(w, "\x01")
}

// ScrubPart is a part of all copies that a pass of the scrub reads at once: those of a kind in Namespace, or
// Everywhere.
type ScrubPart struct {
	Kind      schema.GroupVersionKind
	Resource  schema.GroupVersionResource
	Namespace string
}
