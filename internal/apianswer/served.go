package apianswer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Served reads from the API server whether the CRD of one of our resources exists and is not being deleted. The removal of a CRD deletes
// every object of the kind. The caller must not treat that as deletions that the objects' owners wanted.
func Served(ctx context.Context, live client.Reader, resource string) (bool, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := live.Get(ctx, client.ObjectKey{Name: resource + "." + v1alpha1.Domain}, crd)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && crd.DeletionTimestamp.IsZero(), err
}

// MappingOf returns how the API server serves a kind: in the kind's version or, where that is empty, in the one that the server
// prefers. The error is a NoMatchError where the kind is not served.
func MappingOf(mapper meta.RESTMapper, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if kind.Version == "" {
		return mapper.RESTMapping(kind.GroupKind())
	}
	return mapper.RESTMapping(kind.GroupKind(), kind.Version)
}
