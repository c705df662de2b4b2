// Package gather reads the objects that the commands show and decide on, with the caller's rights only. A user without
// cluster-wide rights sees less of the forest, Warren's trees of namespaces, and the results say so.
package gather

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/paging"
)

// Forest reads all namespaces, and all HierarchyConfigurations if the user may and the cluster has them: two paged
// lists, however many namespaces there are. For a user who may not list namespaces, the error is the API server's 403.
func Forest(ctx context.Context, api client.Reader) (tree.View, error) {
	view := EmptyView()
	err := ListMetadata(ctx, api, corev1.SchemeGroupVersion.WithKind("Namespace"), func(meta *metav1.PartialObjectMetadata) {
		view.Forest = view.Forest.WithNamespace(forest.NamespaceOf(meta))
	})
	if err != nil {
		return view, fmt.Errorf("list namespaces: %w", err)
	}
	err = ListEach(ctx, api, &v1alpha1.HierarchyConfigurationList{}, func(object client.Object) {
		hierarchy := object.(*v1alpha1.HierarchyConfiguration)
		view.Conditions[hierarchy.Namespace] = hierarchy.Status.Conditions
	})
	switch {
	case failure.Unavailable(err):
		view.Unread = append(view.Unread, DescribeUnread("HierarchyConfigurations", err))
	case err != nil:
		return view, fmt.Errorf("list HierarchyConfigurations: %w", err)
	}
	return view, nil
}

// DescribeUnread explains why the objects of a kind could not be listed. what is the kind's plural. err is a refusal, or
// reports that the API server doesn't serve the kind.
func DescribeUnread(what string, err error) string {
	if failure.Refused(err) {
		return "you may not list " + what
	}
	return "the API server has no " + what
}

// EmptyView is a view without namespaces, to which a caller adds what it reads.
func EmptyView() tree.View {
	return tree.View{
		Forest:     forest.New(forest.Rules{ProtectedName: protectedName}),
		Conditions: map[string][]metav1.Condition{},
	}
}

// protectedName reports whether a name is protected in every configuration. For a name that only the configuration
// protects, condition Halted of a HierarchyConfiguration has reason Protected. So the plugin needs no access to the
// operator's namespace.
func protectedName(name string) bool {
	return name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-")
}

// pageSize is how many objects one answer has at most, as in kubectl.
const pageSize = 500

// ListMetadata lists the metadata of the objects of a kind page by page and calls do with each.
func ListMetadata(ctx context.Context, api client.Reader, kind schema.GroupVersionKind, do func(*metav1.PartialObjectMetadata),
	scope ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return ListEach(ctx, api, list, func(object client.Object) { do(object.(*metav1.PartialObjectMetadata)) }, scope...)
}

// ListEach lists the objects of list's kind page by page and calls do with each.
func ListEach(ctx context.Context, api client.Reader, list client.ObjectList,
	do func(client.Object), scope ...client.ListOption) error {
	return paging.Each(ctx, api, list, pageSize, func(object client.Object) error { do(object); return nil }, scope...)
}
