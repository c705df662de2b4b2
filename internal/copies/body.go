package copies

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// ruleVersion is part of every content hash. Raise it with a change that makes Render write something else from the
// same source: then all copies in mode update are written anew.
const ruleVersion = "1"

// Rules are what the configuration says about copies. A nil function matches nothing.
type Rules struct {
	// ExcludedLabel and ExcludedAnnotation determine which keys no copy gets.
	ExcludedLabel, ExcludedAnnotation func(key string) bool
	// NeverPropagate adds to what is never propagated; it gets the kind, name, type (of a Secret) and labels, and is
	// called with an empty type where that is not known yet.
	NeverPropagate func(kind schema.GroupKind, name, secretType string, labels map[string]string) bool
	// ContentAlone makes it no drift that another field manager owns labels or annotations. The values that DigestOf
	// selects still count.
	ContentAlone bool
	// Memo caches what these rules say about managedFields, and must not be shared with other Rules; nil for no cache.
	Memo *Memo
}

// Body is what is written from one version of a source. Only the metadata differs between its copies.
type Body struct {
	// Content is the hash of everything that is written.
	Content string
	// Meta is the digest of the labels and annotations that are written.
	Meta uint64
	// Excluded is why the source is never propagated, or "".
	Excluded string
	// Role is the name of the Role that a RoleBinding names, or "". That name means another Role in each namespace.
	Role string
	// Size is how many bytes the content, labels and annotations take as JSON. limits.bytes counts it for each copy.
	Size int

	labels, annotations map[string]string
	head                []byte // {"apiVersion":…,"kind":…
	rest                []byte // everything outside metadata and status: {"data":{…}}
}

// Render returns the body of the copies of object, which is a source as the API server returned it. Render changes
// object.
func Render(slot Slot, object map[string]any, rules Rules) (*Body, error) {
	meta, err := metadataOf(object)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of %s: %w", slot, err)
	}
	secretType, _ := object["type"].(string)
	b := &Body{
		Excluded:    rules.Excluded(slot, meta, secretType),
		labels:      rules.selectWritten(meta.Labels, rules.ExcludedLabel),
		annotations: rules.selectWritten(meta.Annotations, rules.ExcludedAnnotation),
	}
	head := map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"]}
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(object, key)
	}
	adaptContent(slot, object, b.labels, b.annotations)
	b.Role = roleOf(slot, object)
	b.Meta = digestMaps(b.labels, b.annotations)
	if b.head, err = json.Marshal(head); err != nil {
		return nil, fmt.Errorf("writing %s: %w", slot, err)
	}
	if b.rest, err = json.Marshal(object); err != nil {
		return nil, fmt.Errorf("writing %s: %w", slot, err)
	}
	meat, err := json.Marshal(map[string]any{"version": ruleVersion, "labels": b.labels, "annotations": b.annotations})
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", slot, err)
	}
	b.Content = contentOf(append(append(meat, b.head...), b.rest...))
	b.Size = len(b.rest) + len(meat)
	return b, nil
}

func metadataOf(object map[string]any) (*metav1.ObjectMeta, error) {
	data, err := json.Marshal(object["metadata"])
	if err != nil {
		return nil, err
	}
	meta := &metav1.ObjectMeta{}
	return meta, json.Unmarshal(data, meta)
}

// selectWritten returns the labels or annotations of a source that its copies get.
func (r Rules) selectWritten(all map[string]string, excluded func(string) bool) map[string]string {
	keys := map[string]string{}
	for key, value := range all {
		if r.travelsToCopies(key, excluded) {
			keys[key] = value
		}
	}
	return keys
}

// travelsToCopies reports whether copies get this label or annotation key from their source. With the last-applied
// annotation, "kubectl apply --prune" would delete copies. Copies don't get what the configuration excludes, kubectl's
// last-applied annotation, and keys that Warren reserves; they do get the keys that mark access objects.
func (r Rules) travelsToCopies(key string, excluded func(string) bool) bool {
	if marksAccess(key) {
		return true
	}
	return !v1alpha1.IsReservedKey(key) && key != lastApplied && (excluded == nil || !excluded(key))
}

// marksAccess reports whether key is one by which an access object, and each of its copies, names its purpose and its
// tenant.
func marksAccess(key string) bool {
	return key == v1alpha1.LabelAccess || key == v1alpha1.LabelTenant || key == v1alpha1.AnnotationLNamespaceUID
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

type writtenMeta struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	UID             string                  `json:"uid,omitempty"`
	ResourceVersion string                  `json:"resourceVersion,omitempty"`
	Labels          map[string]string       `json:"labels"`
	Annotations     map[string]string       `json:"annotations"`
	Finalizers      []string                `json:"finalizers,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// Marks are what a copy has beside its source's content: by its Marks, the operator recognizes a copy as its own.
type Marks struct {
	Labels, Annotations map[string]string
	OwnerReferences     []metav1.OwnerReference
}

// JSON is the request body for the copy at slot of the source in namespace from; see Marked.
func (b *Body) JSON(slot Slot, from string, hash Hash, over *Copy) ([]byte, error) {
	return b.Marked(slot, Marks{
		Labels:      map[string]string{v1alpha1.LabelInheritedFrom: from},
		Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash.String()},
	}, over)
}

// Marked is the request body for a copy with these marks at slot. over is the copy that the request replaces: the body
// has its UID and resourceVersion, and what others may keep there. If over is nil, the request creates a copy.
func (b *Body) Marked(slot Slot, marks Marks, over *Copy) ([]byte, error) {
	meta := writtenMeta{Name: slot.Name, Namespace: slot.Namespace}
	meta.Labels, meta.Annotations = maps.Clone(b.labels), maps.Clone(b.annotations)
	if over != nil {
		meta.UID, meta.ResourceVersion = over.UID, over.ResourceVersion
		if over.Kept != nil {
			meta.Finalizers, meta.OwnerReferences = over.Kept.Finalizers, over.Kept.OwnerReferences
			maps.Copy(meta.Labels, over.Kept.Labels)
			maps.Copy(meta.Annotations, over.Kept.Annotations)
		}
	}
	// Without Clip, append could write into the array of over.Kept.
	meta.OwnerReferences = append(slices.Clip(meta.OwnerReferences), marks.OwnerReferences...)
	maps.Copy(meta.Labels, marks.Labels)
	maps.Copy(meta.Annotations, marks.Annotations)
	data, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", slot, err)
	}
	body := make([]byte, 0, len(b.head)+len(data)+len(b.rest)+16)
	body = append(body, b.head[:len(b.head)-1]...)
	body = append(append(body, `,"metadata":`...), data...)
	if len(b.rest) > 2 { // more than {}
		body = append(append(body, ','), b.rest[1:len(b.rest)-1]...)
	}
	return append(body, '}'), nil
}

// Metadata are the labels and annotations that every copy gets; they must not be changed.
func (b *Body) Metadata() (labels, annotations map[string]string) { return b.labels, b.annotations }

// Hash is the parsed annotation source-hash: <mode>:<place>:<content>.
type Hash struct {
	// Mode is create or update; empty for a text that is no hash.
	Mode string
	// Place is 16 hex digits, a hash of the copy's slot and of its source's namespace.
	Place string
	// Content is 32 hex digits, a hash of everything that was written.
	Content string
}

// Unwritten is the content of a copy in mode create that another operator wrote and a migration took over: Warren has
// not written it, so Warren does not delete it.
var Unwritten = strings.Repeat("0", 32)

// String is the text of the annotation.
func (h Hash) String() string { return h.Mode + ":" + h.Place + ":" + h.Content }

// ParseHash reads the annotation source-hash. A text of another form yields the zero Hash.
func ParseHash(text string) Hash {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] != v1alpha1.ModeCreate && parts[0] != v1alpha1.ModeUpdate || len(parts[1]) != 16 || len(parts[2]) != 32 {
		return Hash{}
	}
	mode := v1alpha1.ModeUpdate
	if parts[0] == v1alpha1.ModeCreate {
		mode = v1alpha1.ModeCreate
	}
	return Hash{Mode: mode, Place: parts[1], Content: parts[2]}
}

// PlaceOf returns the place of a hash, which ties the hash to the copy's slot and to its source's namespace: a copy
// that someone exports to another namespace is no copy there.
func PlaceOf(slot Slot, from string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{slot.Kind.Group, slot.Kind.Kind, slot.Namespace, slot.Name, from}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// contentOf is the hash of canonical JSON.
func contentOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16])
}

// adaptContent drops from a source's content what belongs to it alone, kind by kind, and completes what would mean
// something else in another namespace.
func adaptContent(slot Slot, object map[string]any, labels, annotations map[string]string) {
	switch slot.Kind.String() {
	case "Service":
		adaptService(findNested(object, "spec"))
	case "ServiceAccount":
		// These tokens exist only in the source's namespace (PROP-I7).
		delete(object, "secrets")
	case "RoleBinding.rbac.authorization.k8s.io":
		adaptSubjects(slot.Namespace, object)
	case "PersistentVolumeClaim":
		// A volume is bound to one claim, so each copy needs a volume of its own.
		delete(findNested(object, "spec"), "volumeName")
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "pv.kubernetes.io/") })
	case "Job.batch":
		adaptJob(object, labels)
	}
}

// OwnFields names, for a person, the fields that adaptContent drops from copies of a kind; "" if there are none.
func OwnFields(kind schema.GroupKind) string {
	return map[string]string{
		"Service":               "spec.clusterIP and clusterIPs unless None, spec.healthCheckNodePort, nodePort of each port",
		"ServiceAccount":        "secrets",
		"PersistentVolumeClaim": "spec.volumeName",
		"Job.batch":             "spec.selector and the labels of its pods, unless spec.manualSelector is set",
	}[kind.String()]
}

func findNested(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// adaptService drops the addresses and the node ports that the API server gave the source.
func adaptService(spec map[string]any) {
	// The API server has given every other address to the source alone; None is the author's choice (PROP-I4).
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if p, ok := port.(map[string]any); ok {
			delete(p, "nodePort")
		}
	}
}

// adaptSubjects completes service accounts without a namespace: the API server reads them as those of the binding's own
// namespace, so a verbatim copy would give rights to a stranger.
func adaptSubjects(namespace string, object map[string]any) {
	subjects, _ := object["subjects"].([]any)
	for _, subject := range subjects {
		s, ok := subject.(map[string]any)
		if !ok || s["kind"] != "ServiceAccount" {
			continue
		}
		if ns, _ := s["namespace"].(string); ns == "" {
			s["namespace"] = namespace
		}
	}
}

// roleOf is the Role that a RoleBinding names, or "".
func roleOf(slot Slot, object map[string]any) string {
	if slot.Kind.String() != "RoleBinding.rbac.authorization.k8s.io" {
		return ""
	}
	ref := findNested(object, "roleRef")
	if kind, _ := ref["kind"].(string); kind != "Role" {
		return ""
	}
	name, _ := ref["name"].(string)
	return name
}

// adaptJob drops the selector that the API server generated, and the labels that belong to it, unless the source has a
// selector of its own.
func adaptJob(object map[string]any, labels map[string]string) {
	spec := findNested(object, "spec")
	// With manualSelector the selector is the author's, and the API server generates none.
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	delete(spec, "selector")
	template := findNested(spec, "template", "metadata", "labels")
	for _, key := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
		delete(labels, key)
		delete(template, key)
	}
}

// Within reports whether found has everything that b writes, with the same values. found may have more: mutating
// admission adds keys that no manager owns, and a PUT without these keys would not remove them (PROP-F7).
func (b *Body) Within(found *Body) bool {
	if !bytes.Equal(b.head, found.head) || !isSubset(b.labels, found.labels) || !isSubset(b.annotations, found.annotations) {
		return false
	}
	var wanted, there any
	if json.Unmarshal(b.rest, &wanted) != nil || json.Unmarshal(found.rest, &there) != nil {
		return false
	}
	return containsContent(there, wanted)
}

func isSubset(wanted, there map[string]string) bool {
	for key, value := range wanted {
		if got, ok := there[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// containsContent reports whether there equals wanted, except that maps in there may have more keys.
func containsContent(there, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		m, ok := there.(map[string]any)
		for key, value := range wanted {
			got, has := m[key]
			if ok = ok && has && containsContent(got, value); !ok {
				return false
			}
		}
		return ok
	case []any:
		list, ok := there.([]any)
		if !ok || len(list) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !containsContent(list[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(there, wanted)
}
