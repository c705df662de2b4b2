package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
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

// phaseUnknown is the phase of a namespace that the user may not read.
const phaseUnknown = "Unknown"

// OwnTrees are the namespaces of the trees that a user can find.
type OwnTrees struct {
	Namespaces []OwnNamespace
	// Closed are the namespaces whose children the user may not read.
	Closed []string
	// Unseen are the tenants that the user's rights or --tenant name, and in whose namespaces the user may read nothing.
	Unseen []string
}

// FindOwnTrees returns the namespaces of the tree with the given root or, for "", of all trees that the user can find. A user
// who may list namespaces can find every tree. For any other user, FindTops chooses where the search begins. homes are
// the namespaces that the kubeconfig names.
func FindOwnTrees(ctx context.Context, api client.Client, root string, homes []string) (own OwnTrees, err error) {
	view, err := Forest(ctx, api)
	tops := slices.DeleteFunc([]string{root}, func(name string) bool { return name == "" })
	switch {
	case failure.Refused(err) && root != "":
		tops = []string{root}
		if top, tenant, err := Climb(ctx, api, homes[0]); err != nil {
			return own, err
		} else if tenant == root {
			tops = []string{top} // the user may not read what is above it
		}
		view, own.Closed, own.Unseen, err = Walk(ctx, api, tops)
	case failure.Refused(err):
		if tops, err = FindTops(ctx, api, homes, "name one with --tenant"); err != nil {
			return own, err
		}
		view, own.Closed, own.Unseen, err = WalkFound(ctx, api, tops)
	}
	if err != nil {
		return own, err
	}
	nodes := view.All()
	if len(tops) > 0 {
		if nodes, err = view.Below(tops); err != nil {
			return own, err
		}
	}
	for node := range tree.Existing(nodes) {
		known := slices.ContainsFunc(own.Namespaces, func(n OwnNamespace) bool { return n.Name == node.Name }) // trees may overlap
		if !known && (node.Type == tree.TypeRoot || node.Type == tree.TypeSubNamespace) {
			own.Namespaces = append(own.Namespaces, ownNamespace(view.Forest, node))
		}
	}
	return own, nil
}

func ownNamespace(f *forest.Snapshot, node *tree.Node) OwnNamespace {
	n := f.Namespace(node.Name)
	own := OwnNamespace{
		Name: node.Name, Tenant: cmp.Or(f.RootOf(node.Name), n.FormerRoot()), Parent: n.Parent(), Phase: node.Phase, Unread: n.UID == "",
	}
	if own.Unread {
		own.Phase = phaseUnknown
	}
	return own
}

// FindTops returns the namespaces at which a walk begins for a user who may not list namespaces: the tenants that the
// user's rights name, those that list the user, and the trees of homes, at least one namespace that the kubeconfig
// names, and of a service account's own namespace. In the tree of a home, it is the highest namespace that the user
// may read. If there are none, the error advises how to name a tenant.
func FindTops(ctx context.Context, api client.Client, homes []string, advice string) ([]string, error) {
	rights, unlooked, err := ownrights.Ask(ctx, api, homes[0])
	switch {
	case failure.Refused(err):
		unlooked = "you may not ask for your rights"
	case err != nil:
		return nil, err
	}
	me, err := ownrights.Identify(ctx, api)
	if err != nil && !failure.Refused(err) {
		return nil, err
	}
	listing, err := tenantsListing(ctx, api, me)
	if err != nil {
		return nil, err
	}
	tops := slices.Concat(rights.Sudo(), rights.Managed(), listing)
	if own := SubjectOf(me).Namespace; own != "" { // a service account lives in a namespace
		homes = append(slices.Clone(homes), own)
	}
	for _, home := range homes {
		top, tenant, err := Climb(ctx, api, home)
		if err != nil {
			return nil, err
		}
		if top != "" && !slices.Contains(tops, tenant) {
			tops = append(tops, top)
		}
	}
	slices.Sort(tops)
	switch {
	case len(tops) > 0:
		return slices.Compact(tops), nil
	case unlooked != "":
		return nil, NoTopError("you may not list namespaces, and whether your rights name a tenant is not known (" +
			unlooked + "): " + advice)
	}
	known := "you may not list namespaces, and your rights name no tenant, as those of a user never do"
	if named := slices.DeleteFunc(slices.Clone(homes), func(home string) bool { return home == metav1.NamespaceDefault }); len(named) > 0 {
		known += "; what the kubeconfig names does not exist any more, is in no tree, or is not yours (" + strings.Join(named, ", ") + ")"
	}
	return nil, NoTopError(known + ": " + advice + ", or " +
		"choose a namespace of it by kubectl config set-context --current --namespace=NAMESPACE; a manager knows the names")
}

// NoTopError explains why FindTops found nothing, and advises how to name a tenant.
type NoTopError string

func (e NoTopError) Error() string { return string(e) }

// Climb goes up from the namespace called name. It returns the highest namespace that the user may read, and the
// tenant, which is the root of the tree and may be higher. Both are empty if the namespace is in no tree, or can't be
// read.
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

// tenantsListing returns the tenants that list the user, among those whose LNamespace and root namespace the user may
// read.
func tenantsListing(ctx context.Context, api client.Client, me authenticationv1.UserInfo) ([]string, error) {
	mine := subjectsOf(me)
	var listing []string
	err := ListEach(ctx, api, &v1alpha1.LNamespaceList{}, func(object client.Object) {
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
	return append(all, SubjectOf(user).String())
}

// SubjectOf returns the entry in a tenant's list that names this user.
func SubjectOf(user authenticationv1.UserInfo) v1alpha1.Subject {
	if namespace, name, err := serviceaccount.SplitUsername(user.Username); err == nil {
		return v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: name}
	}
	return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: user.Username}
}
