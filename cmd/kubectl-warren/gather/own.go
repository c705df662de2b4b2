package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// OwnNamespace is a namespace in a tree, as ns shows it. Its JSON form is an interface that scripts rely on.
type OwnNamespace struct {
	Name string `json:"name"`
	// Tenant is the root of the tree; empty if the user may not read enough to find it.
	Tenant string `json:"tenant,omitempty"`
	Parent string `json:"parent,omitempty"`
	Phase  string `json:"phase"`
	// Unread reports that the user may not read the Namespace itself: objects in its parent, or the user, have named it.
	Unread bool `json:"-"`
}

// Own returns the namespaces of the tree with the given root or, for "", of all trees that the user can find. A user who may list
// namespaces can find every tree. For any other user, findTops chooses where the search begins. home is the namespace that the kubeconfig
// names. closed are the namespaces whose children the user may not read.
func Own(ctx context.Context, api client.Client, root, home string) (found []OwnNamespace, closed []string, err error) {
	view, err := Forest(ctx, api)
	tops := slices.DeleteFunc([]string{root}, func(name string) bool { return name == "" })
	if failure.Refused(err) {
		if tops, err = findTops(ctx, api, root, home); err != nil {
			return nil, nil, err
		}
		view, closed, err = Walk(ctx, api, tops)
	}
	if err != nil {
		return nil, nil, err
	}
	nodes := view.All()
	if len(tops) > 0 {
		if nodes, err = view.Below(tops); err != nil {
			return nil, nil, err
		}
	}
	for node := range tree.Existing(nodes) {
		known := slices.ContainsFunc(found, func(own OwnNamespace) bool { return own.Name == node.Name }) // trees may overlap
		if !known && (node.Type == tree.TypeRoot || node.Type == tree.TypeSubNamespace) {
			found = append(found, ownNamespace(view.Forest, node))
		}
	}
	return found, closed, nil
}

func ownNamespace(f *forest.Snapshot, node *tree.Node) OwnNamespace {
	n := f.Namespace(node.Name)
	return OwnNamespace{
		Name: node.Name, Tenant: cmp.Or(f.RootOf(node.Name), n.FormerRoot()), Parent: n.Parent(), Phase: node.Phase, Unread: n.UID == "",
	}
}

// findTops returns the namespaces at which a walk begins: root or, if root is "", the tenants that list the user and the tree of home. In
// the tree of home, it is the highest namespace that the user may read.
func findTops(ctx context.Context, api client.Client, root, home string) ([]string, error) {
	top, tenant, err := Climb(ctx, api, home)
	switch {
	case err != nil:
		return nil, err
	case root != "" && root == tenant:
		return []string{top}, nil
	case root != "":
		return []string{root}, nil
	}
	tops, err := tenantsListing(ctx, api)
	if err != nil {
		return nil, err
	}
	if top != "" && !slices.Contains(tops, top) {
		tops = append(tops, top)
	}
	if len(tops) == 0 {
		return nil, fmt.Errorf("you may not list namespaces, and no tenant was found that lists you: name one with --tenant")
	}
	slices.Sort(tops)
	return tops, nil
}

// Climb goes up from the namespace called name. It returns the highest namespace that the user may read, and the tenant, which is the
// root of the tree and may be higher. Both are empty if the namespace is in no tree, or can't be read.
func Climb(ctx context.Context, api client.Reader, name string) (top, tenant string, err error) {
	for range forest.MaxDepth {
		namespace, err := ReadNamespace(ctx, api, name)
		switch {
		case failure.Unavailable(err):
			return top, tenant, nil
		case err != nil:
			return "", "", fmt.Errorf("read namespace %s: %w", name, err)
		}
		parent := namespace.Labels[v1alpha1.LabelParent]
		if parent == "" && namespace.Labels[v1alpha1.LabelType] != v1alpha1.TypeRoot {
			return top, tenant, nil
		}
		top = name
		if tenant, _, _ = strings.Cut(namespace.Annotations[v1alpha1.AnnotationAncestry], "/"); parent == "" {
			return top, name, nil
		}
		name = parent
	}
	return top, tenant, nil
}

// tenantsListing returns the tenants that list the user, among those whose LNamespace and root namespace the user may read.
func tenantsListing(ctx context.Context, api client.Client) ([]string, error) {
	me := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, me); err != nil && !failure.Refused(err) {
		return nil, fmt.Errorf("asking the API server who you are: %w", err)
	}
	mine := subjectsOf(me.Status.UserInfo)
	var listing []string
	err := Each(ctx, api, &v1alpha1.LNamespaceList{}, func(object client.Object) {
		tenant := forest.TenantOf(object.(*v1alpha1.LNamespace))
		if slices.ContainsFunc(mine, func(subject string) bool { return tenant.Listed[subject] }) {
			listing = append(listing, tenant.Name)
		}
	})
	if err != nil && !failure.Unavailable(err) {
		return nil, fmt.Errorf("list LNamespaces: %w", err)
	}
	var readable []string
	for _, name := range listing {
		_, err := ReadNamespace(ctx, api, name)
		switch {
		case err == nil:
			readable = append(readable, name)
		case !failure.Unavailable(err):
			return nil, fmt.Errorf("read namespace %s: %w", name, err)
		}
	}
	return readable, nil
}

// subjectsOf returns the entries in a tenant's lists that would include this user.
func subjectsOf(user authenticationv1.UserInfo) []string {
	var all []string
	for _, group := range user.Groups {
		all = append(all, v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: group}.String())
	}
	if namespace, name, err := serviceaccount.SplitUsername(user.Username); err == nil {
		return append(all, v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: name}.String())
	}
	return append(all, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: user.Username}.String())
}
