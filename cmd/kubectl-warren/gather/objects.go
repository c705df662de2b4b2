package gather

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// ReadNamespace reads the metadata of a Namespace.
func ReadNamespace(ctx context.Context, api client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace, api.Get(ctx, client.ObjectKey{Name: name}, namespace)
}

// ReadHierarchy reads the HierarchyConfiguration of a namespace; nil if it has none.
func ReadHierarchy(ctx context.Context, api client.Reader, namespace string) (*v1alpha1.HierarchyConfiguration, error) {
	hc := &v1alpha1.HierarchyConfiguration{}
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.HierarchyConfigurationName}, hc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return hc, err
}

// ReadSubNamespace reads the SubNamespace name in parent; nil if there is none.
func ReadSubNamespace(ctx context.Context, api client.Reader, parent, name string) (*v1alpha1.SubNamespace, error) {
	sub := &v1alpha1.SubNamespace{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: parent, Name: name}, sub); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	sub.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SubNamespace"))
	return sub, nil
}

// ReadTenant reads the LNamespace that made or adopted a root; nil if there is none with this UID.
func ReadTenant(ctx context.Context, api client.Reader, root, uid string) (*v1alpha1.LNamespace, error) {
	if uid == "" {
		return nil, nil
	}
	tenant := &v1alpha1.LNamespace{}
	err := api.Get(ctx, client.ObjectKey{Name: root}, tenant)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(tenant.UID) != uid:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return tenant, nil
}
