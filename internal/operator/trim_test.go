package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// SEC-X31: a cache keeps only the fields that the operator reads.
func TestTrim(t *testing.T) {
	full := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "web", v1alpha1.AnnotationCreator: "mia"},
		}
	}
	ours := map[string]string{v1alpha1.AnnotationCreator: "mia"}
	cases := map[string]struct {
		object metav1.Object
		want   map[string]string
	}{
		"SubNamespace":           {&v1alpha1.SubNamespace{ObjectMeta: full()}, ours},
		"LNamespace":             {&v1alpha1.LNamespace{ObjectMeta: full()}, ours},
		"HierarchyConfiguration": {&v1alpha1.HierarchyConfiguration{ObjectMeta: full()}, ours},
		"Namespace": {&metav1.PartialObjectMetadata{ObjectMeta: full()},
			map[string]string{"team": "web", v1alpha1.AnnotationCreator: "mia"}},
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
