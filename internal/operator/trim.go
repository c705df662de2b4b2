package operator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// trimObject removes from an object what the operator never reads, before a cache keeps the object, so that users can't fill the
// operator's memory. It removes managedFields of all objects, kubectl's last-applied annotation of Namespaces, and all annotations outside
// our domain of objects of our own kinds. The operator changes objects of these kinds by patches alone, never by a PUT, so that nothing is
// lost in the cluster.
func trimObject(object any) (any, error) {
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
