package distribute

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Distribution is a ResourceDistribution, parsed and with its defaults.
type Distribution struct {
	Name, UID, ResourceVersion string
	Generation                 int64
	// Problem is why nothing can be distributed: KindNotAllowed or InvalidResource; "" if the spec is valid. Why is a
	// sentence about it.
	Problem v1alpha1.Reason
	Why     string
	// Template is nil where spec.resource is invalid.
	Template *Template
	Targets  Targets
	Conflict v1alpha1.ConflictPolicy
	Drift    v1alpha1.DriftPolicy
	Deletion v1alpha1.DeletionPolicy
	Suspend  bool
	// Deleting reports that the object has a deletionTimestamp. From then on the garbage collector decides about its
	// copies.
	Deleting bool
	// Check is a hash of the object's UID, targets and conflictPolicy. A check for conflicts that has passed stays
	// valid as long as Check is the same.
	Check string
	// Named is the record of names in the status that was read with the spec; nil if that status has no record for
	// these targets.
	Named Named
	// unrecorded reports that the status counts targets but has no record of names: an earlier version of the operator
	// wrote it.
	unrecorded bool
	// written is when spec.targets was written, by the API server's clock, or later.
	written time.Time
}

// Settings are the settings of the configuration for distribution.
type Settings struct {
	// Kinds are those that may be distributed, in the order of the file.
	Kinds []schema.GroupVersionKind
	// AllowOverwrite allows conflictPolicy Overwrite.
	AllowOverwrite bool
	// Protected reports whether a namespace, by its name, is never a target.
	Protected func(namespace string) bool
}

// Allows reports whether a kind may be distributed.
func (s Settings) Allows(kind schema.GroupVersionKind) bool {
	return slices.Contains(s.Kinds, kind)
}

// Read parses a ResourceDistribution. An invalid one gets a Problem.
func Read(rd *v1alpha1.ResourceDistribution, s Settings) *Distribution {
	d := &Distribution{
		Name: rd.Name, UID: string(rd.UID), ResourceVersion: rd.ResourceVersion, Generation: rd.Generation,
		Conflict: orDefault(rd.Spec.ConflictPolicy, v1alpha1.ConflictFail),
		Drift:    orDefault(rd.Spec.DriftPolicy, v1alpha1.DriftIgnore),
		Deletion: orDefault(rd.Spec.DeletionPolicy, v1alpha1.DeletionDelete),
		Suspend:  rd.Spec.Suspend,
		Deleting: rd.DeletionTimestamp != nil,
	}
	var err error
	if d.Template, err = ReadTemplate(rd.Spec.Resource.Raw); err == nil {
		d.Targets, err = ReadTargets(rd.Spec.Targets)
	}
	switch {
	case err != nil:
		d.Problem, d.Why = v1alpha1.ReasonInvalidResource, err.Error()
	case !s.Allows(d.Template.Kind):
		d.Problem, d.Why = v1alpha1.ReasonKindNotAllowed, KindNotAllowed(d.Template.Kind, s)
	case d.Conflict == v1alpha1.ConflictOverwrite && !s.AllowOverwrite:
		d.Problem, d.Why = v1alpha1.ReasonInvalidResource, OverwriteDisabled
	}
	d.Check, d.Targets.hash = checkOf(rd), hashOf(rd.UID, rd.Spec.Targets)
	d.Named, d.unrecorded, d.written = d.Targets.ReadNamed(&rd.Status), rd.Status.Named == nil && rd.Status.Targets > 0, writtenAt(rd)
	if d.Named != nil && rd.Status.Named.Written != nil {
		d.written = rd.Status.Named.Written.Time // a later change of another field doesn't make spec.targets younger
	}
	return d
}

// Choose reports whether a namespace is a target, according to Named, the record in the status that was read with the
// spec.
func (d *Distribution) Choose(f *forest.Snapshot, namespace string, protected func(string) bool) Choice {
	return d.Targets.Choose(f, namespace, protected, d.Named)
}

// writtenAt returns when the spec was written last, according to the managedFields: the API server dates each manager's
// last change in them. Without managedFields, the time is that of the object's creation.
func writtenAt(rd *v1alpha1.ResourceDistribution) time.Time {
	at := rd.CreationTimestamp.Time
	for _, entry := range rd.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.FieldsV1 != nil && entry.Time.After(at) &&
			bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			at = entry.Time.Time
		}
	}
	return at
}

// OverwriteDisabled is the message that refuses conflictPolicy Overwrite.
const OverwriteDisabled = "Overwrite is disabled by the configuration: distribution.allowOverwrite is false"

// KindNotAllowed returns the message that refuses a kind, with the allowed ones. If only the apiVersion of the kind is
// wrong, the message has the allowed apiVersions instead.
func KindNotAllowed(kind schema.GroupVersionKind, s Settings) string {
	kinds, versions := map[string]bool{}, map[string]bool{}
	for _, one := range s.Kinds {
		kinds[one.Kind] = true
		if one.Kind == kind.Kind {
			versions[one.GroupVersion().String()] = true
		}
	}
	refused, allowed := "kind "+kind.Kind, kinds
	if len(versions) > 0 {
		refused, allowed = "apiVersion "+kind.GroupVersion().String()+" of kind "+kind.Kind, versions
	}
	return refused + " is not allowed: allowed are " + joinSorted(allowed) + " (distribution.kinds of the configuration)"
}

func orDefault[T ~string](value, otherwise T) T {
	if value == "" {
		return otherwise
	}
	return value
}

func checkOf(rd *v1alpha1.ResourceDistribution) string {
	return hashOf(rd.UID, rd.Spec.Targets, orDefault(rd.Spec.ConflictPolicy, v1alpha1.ConflictFail))
}

func hashOf(values ...any) string {
	text, _ := json.Marshal(values) // fails only for channels and functions
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Reference returns the ownerReference for copies that the garbage collector deletes with the distribution.
func (d *Distribution) Reference() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: Kind, Name: d.Name, UID: types.UID(d.UID),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// Marks returns the label, annotations and ownerReference of d's copy in a namespace. An adopted copy, and every copy
// under deletionPolicy Orphan, has no ownerReference, so that it outlives d.
func (d *Distribution) Marks(namespace string, adopted bool) copies.Marks {
	return d.buildMarks(namespace, adopted, d.Template.Content)
}

func (d *Distribution) buildMarks(namespace string, adopted bool, content string) copies.Marks {
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

// AllOrNothing reports whether a conflict in one target keeps the operator from creating a copy in any target.
func (d *Distribution) AllOrNothing() bool {
	return d.Conflict == v1alpha1.ConflictFail || d.Conflict == v1alpha1.ConflictAdoptIdentical
}

// Distributes reports whether anything may be written for d.
func (d *Distribution) Distributes() bool { return d.Problem == "" && !d.Suspend && !d.Deleting }

// Template is a parsed spec.resource, from which the copies are written.
type Template struct {
	Kind schema.GroupVersionKind
	Name string
	// Bytes is the size of spec.resource as JSON.
	Bytes int
	*copies.Body
	object map[string]any // normalised, for comparisons
}

// refusedSecretTypes are types of Secrets that belong to one namespace or to a controller, and can't be distributed.
var refusedSecretTypes = []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"}

// metadataKeys are what spec.resource.metadata may hold.
var metadataKeys = []string{"name", "labels", "annotations"}

// ReadTemplate reads spec.resource. Its errors name fields, never values of data.
func ReadTemplate(raw []byte) (*Template, error) {
	object := map[string]any{}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, errors.New("spec.resource is not an object")
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion == "" || kind == "" {
		return nil, errors.New("spec.resource: apiVersion, as VERSION or GROUP/VERSION, and kind are required")
	}
	meta, _ := object["metadata"].(map[string]any)
	name, err := checkMetadata(meta)
	if err != nil {
		return nil, err
	}
	t := &Template{Kind: gv.WithKind(kind), Name: name, Bytes: len(raw)}
	if err := t.normaliseObject(object); err != nil {
		return nil, err
	}
	t.object = maps.Clone(object)
	if t.Body, err = copies.Render(t.Slot(""), object, copies.Rules{}); err != nil {
		return nil, errors.New("spec.resource can't be written as JSON")
	}
	return t, nil
}

// Slot returns the place of the copy in a namespace.
func (t *Template) Slot(namespace string) copies.Slot {
	return copies.Slot{Kind: t.Kind.GroupKind(), Namespace: namespace, Name: t.Name}
}

func checkMetadata(meta map[string]any) (name string, err error) {
	at := field.NewPath("spec", "resource", "metadata")
	if name, _ = meta["name"].(string); name == "" {
		return "", errors.New("spec.resource.metadata.name is required")
	}
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return "", fmt.Errorf("spec.resource.metadata.name %q must be a DNS subdomain of lower case letters, digits, dashes and dots", name)
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) { // sorted: the message becomes a condition, which must be the same each time
		if !slices.Contains(metadataKeys, key) && !isEmpty(meta[key]) {
			return "", fmt.Errorf("spec.resource.metadata may hold name, labels and annotations only: take out %q", key)
		}
	}
	for _, key := range metadataKeys[1:] {
		values, err := stringMap(meta[key])
		if err != nil {
			return "", fmt.Errorf("spec.resource.metadata.%s must be a map of strings", key)
		}
		for _, k := range slices.Sorted(maps.Keys(values)) {
			if v1alpha1.IsReservedKey(k) {
				return "", fmt.Errorf("spec.resource.metadata.%s: keys of %s belong to the operator: take out %q", key, v1alpha1.Domain, k)
			}
		}
		problems := validation.ValidateAnnotations(values, at.Child(key))
		if key == "labels" {
			problems = metav1validation.ValidateLabels(values, at.Child(key))
		}
		if len(problems) > 0 {
			return "", fmt.Errorf("%s: %s", problems[0].Field, problems[0].Detail)
		}
	}
	return name, nil
}

// isEmpty reports whether a field counts as absent.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

func stringMap(value any) (map[string]string, error) {
	if value == nil {
		return nil, nil
	}
	all, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("no map")
	}
	texts := make(map[string]string, len(all))
	for key, one := range all {
		text, ok := one.(string)
		if !ok {
			return nil, errors.New("no text")
		}
		texts[key] = text
	}
	return texts, nil
}

// normaliseObject returns an error for an object that can't be distributed, folds stringData into data, and sets the
// defaults that the API server would set.
func (t *Template) normaliseObject(object map[string]any) error {
	delete(object, "status")
	if strings.HasSuffix(t.Kind.Kind, "List") {
		return fmt.Errorf("spec.resource: kind %s is a list of objects; a ResourceDistribution holds one", t.Kind.Kind)
	}
	switch t.Kind.GroupKind() {
	case schema.GroupKind{Kind: "ConfigMap"}:
		if t.Name == "kube-root-ca.crt" {
			return errors.New("spec.resource: ConfigMap kube-root-ca.crt can't be distributed: Kubernetes writes one in every namespace")
		}
	case schema.GroupKind{Kind: "Secret"}:
		if text, _ := object["type"].(string); slices.Contains(refusedSecretTypes, text) {
			return fmt.Errorf("spec.resource: a Secret of type %s can't be distributed", text)
		} else if text == "" {
			object["type"] = "Opaque"
		}
		if err := foldStringData(object); err != nil {
			return err
		}
	}
	for _, key := range []string{"data", "binaryData"} {
		if value, there := object[key]; there && isEmpty(value) {
			delete(object, key)
		} else if there && t.holdsData() {
			object[key] = asStored(value, key == "binaryData" || t.Kind.Kind == "Secret")
		}
	}
	return nil
}

// asStored returns the data of a Secret or ConfigMap as the API server returns it. Null becomes an empty text; if
// encoded is true, base64 loses its line ends.
func asStored(data any, encoded bool) any {
	all, ok := data.(map[string]any)
	if !ok {
		return data
	}
	stored := make(map[string]any, len(all))
	for key, value := range all {
		stored[key] = value
		if text, ok := value.(string); value == nil {
			stored[key] = ""
		} else if plain, err := base64.StdEncoding.DecodeString(text); ok && encoded && err == nil {
			stored[key] = base64.StdEncoding.EncodeToString(plain)
		}
	}
	return stored
}

func foldStringData(object map[string]any) error {
	texts, err := stringMap(object["stringData"])
	if err != nil {
		return errors.New("spec.resource.stringData must be a map of strings")
	}
	delete(object, "stringData")
	if len(texts) == 0 {
		return nil
	}
	data, _ := object["data"].(map[string]any)
	data = maps.Clone(data)
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object["data"] = data
	return nil
}
