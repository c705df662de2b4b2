package preview

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/paging"
)

// facts are the cluster's forest of namespaces, and the objects that say what it should be.
type facts struct {
	forest  *forest.Snapshot
	tenants []*v1alpha1.LNamespace
	// finalized are, by parent/name, the SubNamespaces that hold the operator's finalizer.
	finalized map[string]bool
}

// readForest reads the namespaces and all that says what they should be, the LNamespaces among it.
func readForest(ctx context.Context, api client.Reader, r forest.Rules) (*facts, error) {
	read := &facts{forest: forest.New(r), finalized: map[string]bool{}}
	made, asked := map[string]time.Time{}, map[string]time.Time{}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	for _, list := range []client.ObjectList{namespaces, &v1alpha1.SubNamespaceList{}, &v1alpha1.LNamespaceList{}, &v1alpha1.HierarchyConfigurationList{}} {
		err := paging.Each(ctx, api, list, pageSize, func(object client.Object) error {
			switch o := object.(type) {
			case *metav1.PartialObjectMetadata:
				made[o.Name] = o.CreationTimestamp.Time
				read.forest = read.forest.WithNamespace(forest.NamespaceOf(o))
			case *v1alpha1.SubNamespace:
				read.finalized[o.Namespace+"/"+o.Name] = controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerSubNamespace)
				read.forest = read.forest.WithSub(forest.SubOf(o))
			case *v1alpha1.LNamespace:
				read.forest, read.tenants = read.forest.WithTenant(forest.TenantOf(o)), append(read.tenants, o)
			case *v1alpha1.HierarchyConfiguration:
				if o.Name == v1alpha1.HierarchyConfigurationName {
					asked[o.Namespace] = o.CreationTimestamp.Time
					read.forest = read.forest.WithHierarchy(forest.HierarchyOf(o.Namespace, string(o.UID), o.Spec))
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the namespaces and what places them: %w", err)
		}
	}
	for namespace, since := range asked {
		read.forest = read.forest.WithRequestDated(namespace, since, made)
	}
	return read, nil
}
