package operator

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// trimObject removes from an object what the operator never reads, before a cache keeps the object, so that users can't
// fill the operator's memory. It removes managedFields of all objects; of Namespaces kubectl's last-applied annotation,
// finalizers and owners; of objects of our own kinds all labels, owners and annotations but creator and moved-from, and
// conditions of others. The finalizers stay, because a patch lists all of them; policy warren-object-metadata bounds
// them. The operator changes objects of these kinds by patches alone, never by a PUT, so that nothing is lost in the
// cluster.
func trimObject(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil //nolint:nilerr // a tombstone has no metadata, and holds an object that was trimmed
	}
	accessor.SetManagedFields(nil)
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
		o.Finalizers, o.OwnerReferences, o.GenerateName = nil, nil, ""
		o.SetSelfLink("")
		trimLabels(o.Labels)
	case *v1alpha1.LNamespace:
		trimMetadata(&o.ObjectMeta)
		o.Status.Conditions = v1alpha1.TrimConditions(o.Status.Conditions)
	case *v1alpha1.SubNamespace:
		trimMetadata(&o.ObjectMeta)
		o.Status.Conditions = v1alpha1.TrimConditions(o.Status.Conditions)
	case *v1alpha1.HierarchyConfiguration:
		trimMetadata(&o.ObjectMeta)
		o.Status.Conditions = v1alpha1.TrimConditions(o.Status.Conditions)
	}
	if len(accessor.GetAnnotations()) == 0 {
		accessor.SetAnnotations(nil)
	}
	return object, nil
}

// mostLabels bounds the labels of a Namespace, keys and values together, in bytes.
const mostLabels = 16 << 10

// trimLabels removes the labels of a Namespace that has too many, except those that decide what the operator does there. The owner of a
// namespace in no tree may set any number. A namespace in a tree keeps its labels, for the schemas and the configuration bound them there,
// and the operator would write again and again what it doesn't see.
func trimLabels(labels map[string]string) {
	if labels[v1alpha1.LabelParent] != "" || labels[v1alpha1.LabelType] != "" {
		return
	}
	size := 0
	for key, value := range labels {
		size += len(key) + len(value)
	}
	if size <= mostLabels {
		return
	}
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return !v1alpha1.IsReservedKey(key) && !strings.HasPrefix(key, "pod-security.kubernetes.io/") && key != corev1.LabelMetadataName &&
			key != v1alpha1.LabelCreatedBy
	})
}

func trimMetadata(m *metav1.ObjectMeta) {
	maps.DeleteFunc(m.Annotations, func(key, value string) bool {
		// A user writes moved-from, and only the name of a namespace means something there.
		return key != v1alpha1.AnnotationCreator && (key != v1alpha1.AnnotationMovedFrom || len(value) > validation.DNS1123LabelMaxLength)
	})
	m.Labels, m.OwnerReferences, m.GenerateName = nil, nil, ""
	m.SetSelfLink("")
}
