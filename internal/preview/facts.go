package preview

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/paging"
)

// readForest reads the namespaces and all objects that decide about them: SubNamespaces, LNamespaces and HierarchyConfigurations.
func readForest(ctx context.Context, api client.Client, r forest.Rules) (*forest.Snapshot, error) {
	read := forest.New(r)
	made, asked := map[string]time.Time{}, map[string]time.Time{}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	for _, list := range []client.ObjectList{namespaces, &v1alpha1.SubNamespaceList{}, &v1alpha1.LNamespaceList{},
		&v1alpha1.HierarchyConfigurationList{}} {
		err := paging.Each(ctx, api, list, pageSize, func(object client.Object) error {
			switch o := object.(type) {
			case *metav1.PartialObjectMetadata:
				made[o.Name] = o.CreationTimestamp.Time
				read = read.WithNamespace(forest.NamespaceOf(o))
			case *v1alpha1.SubNamespace:
				read = read.WithSub(forest.SubOf(o))
			case *v1alpha1.LNamespace:
				read = read.WithTenant(forest.TenantOf(o))
			case *v1alpha1.HierarchyConfiguration:
				if o.Name == v1alpha1.HierarchyConfigurationName {
					asked[o.Namespace] = o.CreationTimestamp.Time
					h := forest.HierarchyOf(o.Namespace, string(o.UID), o.Spec)
					h.ParentUID = forest.RequestedParent(o)
					read = read.WithHierarchy(h)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the namespaces and what places them: %w", err)
		}
	}
	for namespace, since := range asked {
		read = forest.WithRequestDated(read, namespace, since, made)
	}
	return read, nil
}
