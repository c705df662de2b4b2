package operator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// trim takes from an object, before a cache keeps it, what nobody reads there, so that users can't fill the operator's
// memory with it: managedFields of all objects, what kubectl notes for itself on Namespaces, and of our own kinds all
// annotations of others. Objects of these kinds are changed by patches alone, never by a PUT, so nothing is lost by it.
func trim(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil //nolint:nilerr // a tombstone has no metadata, and holds an object that was trimmed
	}
	accessor.SetManagedFields(nil)
	annotations := accessor.GetAnnotations()
	switch object.(type) {
	case *metav1.PartialObjectMetadata:
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	case *v1alpha1.LNamespace, *v1alpha1.SubNamespace, *v1alpha1.HierarchyConfiguration:
		for key := range annotations {
			if !strings.HasPrefix(key, v1alpha1.Domain+"/") {
				delete(annotations, key)
			}
		}
	}
	if len(annotations) == 0 {
		accessor.SetAnnotations(nil)
	}
	return object, nil
}
