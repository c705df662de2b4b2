package watchset

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultTransform removes the bookkeeping of kubectl and the server: managedFields and the annotation
// kubectl.kubernetes.io/last-applied-configuration. It changes object and returns it.
func DefaultTransform(object client.Object) client.Object {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		object.SetAnnotations(annotations)
	}
	return object
}
