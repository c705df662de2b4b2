package distribute

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

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
		return nil, errors.New("spec.resource: apiVersion and kind are required")
	}
	meta, _ := object["metadata"].(map[string]any)
	name, err := checkMetadata(meta)
	if err != nil {
		return nil, err
	}
	t := &Template{Kind: gv.WithKind(kind), Name: name, Bytes: len(raw)}
	if err := t.normalise(object); err != nil {
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
		for k := range values {
			if v1alpha1.IsReservedKey(k) {
				return "", fmt.Errorf("spec.resource.metadata.%s: keys of %s belong to the operator", key, v1alpha1.Domain)
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

// isEmpty says whether a field counts as absent.
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

// normalise returns an error for an object that can't be distributed, folds stringData into data, and sets the defaults that the
// API server would set.
func (t *Template) normalise(object map[string]any) error {
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

// asStored returns the data of a Secret or ConfigMap as the API server returns them: null as an empty text, and base64 without line
// ends.
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
