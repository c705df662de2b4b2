package restrict

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Reader is a client that drops annotations which the page must not know, as soon as an object arrives. The annotation
// last-applied-configuration of a Secret holds the Secret's values.
type Reader struct{ client.Client }

// NewReader returns api without those annotations.
func NewReader(api client.Client) client.Client { return Reader{api} }

// Get implements client.Reader.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	err := r.Client.Get(ctx, key, object, options...)
	if err == nil {
		DropAnnotations(object)
	}
	return err
}

// List implements client.Reader.
func (r Reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Client.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			DropAnnotations(object)
		}
		return nil
	})
}

// DropAnnotations removes managed fields and the annotation last-applied-configuration from an object. If the object
// was read as metadata and is no Namespace, only Warren's annotations stay. It changes object and returns it.
func DropAnnotations(object client.Object) client.Object {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	partial, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || partial.Kind == "Namespace" && partial.APIVersion == "v1" {
		return object
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !strings.HasPrefix(key, v1alpha1.Domain+"/") })
	return object
}
