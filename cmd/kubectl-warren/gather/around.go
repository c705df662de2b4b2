package gather

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Around returns a view of the whole forest or, for a user without cluster-wide rights, of what the user may read
// around the namespace.
func Around(ctx context.Context, api client.Client, name string) (tree.View, error) {
	view, err := Forest(ctx, api)
	if failure.Refused(err) {
		return gatherSurroundings(ctx, api, name)
	}
	return view, err
}

// gatherSurroundings returns a view of a namespace, its ancestors and its children, as far as a user without
// cluster-wide rights may read them.
func gatherSurroundings(ctx context.Context, api client.Client, name string) (tree.View, error) {
	view := EmptyView()
	view.Partial = true
	seen, err := step{name: name}.readNamespaceSight(ctx, api)
	if err == nil && seen.unseen {
		err = UnseenError(name)
	}
	if err != nil || seen.namespace == nil {
		return view, err
	}
	view.Forest = view.Forest.WithNamespace(seen.namespace)
	view.Conditions[name] = seen.conditions
	for _, child := range seen.next {
		if child.reported {
			view.Forest = view.Forest.WithNamespace(child.unreadNamespace())
		}
	}
	for at := seen.namespace.Parent(); at != "" && view.Forest.Namespace(at) == nil; {
		above, err := ReadNamespace(ctx, api, at)
		if failure.Unavailable(err) {
			break
		}
		if err != nil {
			return view, err
		}
		view.Forest = view.Forest.WithNamespace(forest.NamespaceOf(above))
		at = above.Labels[v1alpha1.LabelParent]
	}
	return view, nil
}

// Below returns a view of the whole forest or, for a user without cluster-wide rights, of what the user may read below
// the namespace.
func Below(ctx context.Context, api client.Client, name string) (tree.View, error) {
	view, err := Forest(ctx, api)
	if failure.Refused(err) {
		view, _, _, err = Walk(ctx, api, []string{name})
	}
	return view, err
}
