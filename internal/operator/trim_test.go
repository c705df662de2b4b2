package operator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// SEC-X31: a cache keeps only the fields that the operator reads.
func TestTrim(t *testing.T) {
	full := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "web", v1alpha1.AnnotationCreator: "mia",
				v1alpha1.AnnotationMovedFrom: "shop"},
		}
	}
	ours := map[string]string{v1alpha1.AnnotationCreator: "mia", v1alpha1.AnnotationMovedFrom: "shop"}
	cases := map[string]struct {
		object metav1.Object
		want   map[string]string
	}{
		"SubNamespace":           {&v1alpha1.SubNamespace{ObjectMeta: full()}, ours},
		"LNamespace":             {&v1alpha1.LNamespace{ObjectMeta: full()}, ours},
		"HierarchyConfiguration": {&v1alpha1.HierarchyConfiguration{ObjectMeta: full()}, ours},
		"Namespace": {&metav1.PartialObjectMetadata{ObjectMeta: full()},
			map[string]string{"team": "web", v1alpha1.AnnotationCreator: "mia", v1alpha1.AnnotationMovedFrom: "shop"}},
		"what is written by PUT": {&rbacv1.RoleBinding{ObjectMeta: full()}, full().Annotations},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := trimObject(c.object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, c.object.GetAnnotations()); diff != "" || c.object.GetManagedFields() != nil {
				t.Errorf("managedFields %v, annotations -want, +got:\n%s", c.object.GetManagedFields(), diff)
			}
		})
	}
	gone := cache.DeletedFinalStateUnknown{Key: "n"}
	if got, err := trimObject(gone); err != nil || got != any(gone) {
		t.Errorf("a tombstone became %v, %v", got, err)
	}
}

// Users write each field of our kinds, so each needs a bound, except those that trimObject removes.
func TestTrimLargest(t *testing.T) {
	const mebibyte = 1 << 20
	long := strings.Repeat("x", mebibyte)
	largest := func() metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: "n", GenerateName: long, Labels: map[string]string{"l": long},
			Annotations: map[string]string{"a": long, v1alpha1.Domain + "/own": long, v1alpha1.AnnotationCreator: "mia",
				v1alpha1.AnnotationMovedFrom: long},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long}}, OwnerReferences: []metav1.OwnerReference{{Name: long}}}
		m.SetSelfLink(long)
		for i := range 32 {
			m.Finalizers = append(m.Finalizers, fmt.Sprintf("%s/%063d", long[:253], i))
		}
		return m
	}
	var conditions []metav1.Condition
	for _, kind := range []v1alpha1.ConditionType{"A", "B", v1alpha1.ConditionReady, v1alpha1.ConditionPropagated, v1alpha1.ConditionStalled} {
		conditions = append(conditions, metav1.Condition{Type: string(kind), Reason: "Planted", Message: long})
	}
	for name, object := range map[string]client.Object{
		"SubNamespace": &v1alpha1.SubNamespace{ObjectMeta: largest(), Status: v1alpha1.SubNamespaceStatus{Conditions: conditions}},
		"LNamespace":   &v1alpha1.LNamespace{ObjectMeta: largest(), Status: v1alpha1.LNamespaceStatus{Conditions: conditions}},
		"HierarchyConfiguration": &v1alpha1.HierarchyConfiguration{ObjectMeta: largest(),
			Status: v1alpha1.HierarchyConfigurationStatus{Conditions: conditions}},
		"Namespace": &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: manyLabels(mebibyte / 10),
			OwnerReferences: largest().OwnerReferences, Finalizers: []string{long}}},
	} {
		t.Run("SEC-X52 of an object with a megabyte in each part of its metadata but finalizers, and in each message, the operator "+
			"keeps at most 32 KiB: "+name, func(t *testing.T) {
			if _, err := trimObject(object); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > 32<<10 {
				t.Errorf("the cache keeps %d bytes", len(text))
			}
		})
	}
}

// What a Namespace's labels decide doesn't depend on how many there are.
func TestTrimmedLabels(t *testing.T) {
	trimmed := func(label, value string) map[string]string {
		n := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: manyLabels(10_000)}}
		n.Labels[label] = value
		if _, err := trimObject(n); err != nil {
			t.Fatal(err)
		}
		return n.Labels
	}
	t.Run("DIST-D119 the operator keeps the label of a namespace's creator, also if the namespace has 10,000 labels", func(t *testing.T) {
		if got := trimmed(v1alpha1.LabelCreatedBy, v1alpha1.OperatorName); len(got) != 2 || got[v1alpha1.LabelCreatedBy] == "" {
			t.Errorf("%d labels stay, created-by=%q", len(got), got[v1alpha1.LabelCreatedBy])
		}
	})
	t.Run("SEC-X52 a namespace in a tree keeps its labels", func(t *testing.T) {
		if got := len(trimmed(v1alpha1.LabelParent, "pay")); got != 10_002 {
			t.Errorf("%d labels stay", got)
		}
	})
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{v1alpha1.LabelTemplate: "t"}
	for i := range n {
		labels[fmt.Sprintf("l%08d", i)] = ""
	}
	return labels
}

// What trimObject leaves is what the schema allows.
func TestSchemasAreBounded(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("CRDs: %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		t.Run("SEC-X52 each text, list and map in spec and status of our kinds has a bound: "+crd.Spec.Names.Kind, func(t *testing.T) {
			for _, version := range crd.Spec.Versions {
				for _, part := range []string{"spec", "status"} {
					schema := version.Schema.OpenAPIV3Schema.Properties[part]
					for _, field := range unboundedFields(part, &schema) {
						t.Errorf("%s has no bound: add maxLength, maxItems or maxProperties", field)
					}
				}
			}
		})
	}
}

// unboundedFields returns the paths of the texts, lists and maps in a schema to which a user may give any size. A map whose values have no
// bound of their own needs a rule.
func unboundedFields(path string, s *apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	switch s.Type {
	case "string":
		// controller-gen drops the bound of a UID, which is in the status of an LNamespace: only cluster admins write that beside the operator.
		if s.MaxLength == nil && s.Enum == nil && s.Format == "" && !strings.HasSuffix(path, "UID") {
			found = append(found, path)
		}
	case "array":
		if s.MaxItems == nil {
			found = append(found, path)
		}
		found = append(found, unboundedFields(path+"[]", s.Items.Schema)...)
	case "object":
		for name, property := range s.Properties {
			found = append(found, unboundedFields(path+"."+name, &property)...)
		}
		if s.AdditionalProperties == nil {
			break
		}
		if s.MaxProperties == nil {
			found = append(found, path)
		}
		if len(s.XValidations) == 0 {
			found = append(found, unboundedFields(path+"[]", s.AdditionalProperties.Schema)...)
		}
	}
	return found
}
