package rights

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Kinds of RBAC.
const (
	kindRole               = "Role"
	kindClusterRole        = "ClusterRole"
	kindRoleBinding        = "RoleBinding"
	kindClusterRoleBinding = "ClusterRoleBinding"
)

// reader reads the objects that a report needs, with the caller's rights and each only once. Its only state is the
// report's memory.
type reader struct {
	api     client.Client
	refused func(error) bool
	memory  *memory
}

// readListOrGap reads a list. If the caller lacks the right, it records a gap and returns false.
func (r *reader) readListOrGap(ctx context.Context, list client.ObjectList, resource, namespace string) (bool, error) {
	what := "list " + resource
	if namespace != "" {
		what += " in " + namespace
	}
	err := r.api.List(ctx, list, client.InNamespace(namespace))
	switch {
	case err == nil:
		return true, nil
	case r.refused(err):
		r.memory.unread.recordGap(what)
		return false, nil
	}
	return false, fmt.Errorf("%s: %w", what, err)
}

// bindingsInNamespace returns the RoleBindings of a namespace, or the ClusterRoleBindings for "", with what their roles
// allow.
func (r *reader) bindingsInNamespace(ctx context.Context, namespace string) (bindings, error) {
	if known, ok := r.memory.bound.findRemembered(namespace); ok {
		return known, nil
	}
	found, err := r.readBindings(ctx, namespace)
	if err != nil {
		return found, err
	}
	r.memory.bound.rememberValue(namespace, found)
	return found, nil
}

// bindingsHolding returns all bindings that apply in a namespace. For "" it returns the ClusterRoleBindings.
func (r *reader) bindingsHolding(ctx context.Context, namespace string) (bindings, error) {
	wide, err := r.bindingsInNamespace(ctx, "")
	if err != nil || namespace == "" {
		return wide, err
	}
	here, err := r.bindingsInNamespace(ctx, namespace)
	return here.mergeBindings(wide), err
}

func (r *reader) readBindings(ctx context.Context, namespace string) (bindings, error) {
	var found bindings
	if namespace == "" {
		list := &rbacv1.ClusterRoleBindingList{}
		if ok, err := r.readListOrGap(ctx, list, "clusterrolebindings", ""); !ok {
			return bindings{partial: true}, err
		}
		for i := range list.Items {
			b := &list.Items[i]
			found.items = append(found.items, newBinding(kindClusterRoleBinding, b.ObjectMeta, b.RoleRef, b.Subjects))
		}
	} else {
		list := &rbacv1.RoleBindingList{}
		if ok, err := r.readListOrGap(ctx, list, "rolebindings", namespace); !ok {
			return bindings{partial: true}, err
		}
		for i := range list.Items {
			b := &list.Items[i]
			found.items = append(found.items, newBinding(kindRoleBinding, b.ObjectMeta, b.RoleRef, b.Subjects))
		}
	}
	for i := range found.items {
		b := &found.items[i]
		table, err := r.rolesInNamespace(ctx, b.role.Namespace)
		if err != nil {
			return bindings{}, err
		}
		b.rules, b.opaque = table.rules[b.role.Name], !table.read
		found.partial = found.partial || b.opaque
	}
	return found, nil
}

func newBinding(kind string, meta metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject) binding {
	b := binding{Ref: Ref{kind, meta.Namespace, meta.Name}, role: Ref{Kind: ref.Kind, Name: ref.Name}}
	if ref.Kind == kindRole {
		b.role.Namespace = meta.Namespace
	}
	for _, s := range subjects {
		s.APIGroup = ""
		switch {
		case s.Kind != rbacv1.ServiceAccountKind:
			s.Namespace = ""
		case s.Namespace == "":
			s.Namespace = meta.Namespace
		}
		b.subjects = append(b.subjects, s)
	}
	return b
}

// rolesInNamespace returns the Roles of a namespace, or the ClusterRoles for "".
func (r *reader) rolesInNamespace(ctx context.Context, namespace string) (roleTable, error) {
	if known, ok := r.memory.roles.findRemembered(namespace); ok {
		return known, nil
	}
	found := roleTable{rules: map[string][]rbacv1.PolicyRule{}}
	var err error
	if namespace == "" {
		list := &rbacv1.ClusterRoleList{}
		found.read, err = r.readListOrGap(ctx, list, "clusterroles", "")
		for i := range list.Items {
			found.rules[list.Items[i].Name] = list.Items[i].Rules
		}
	} else {
		list := &rbacv1.RoleList{}
		found.read, err = r.readListOrGap(ctx, list, "roles", namespace)
		for i := range list.Items {
			found.rules[list.Items[i].Name] = list.Items[i].Rules
		}
	}
	if err != nil {
		return found, err
	}
	r.memory.roles.rememberValue(namespace, found)
	return found, nil
}

// readTenant reads an LNamespace. If the cluster doesn't serve the kind, the LNamespace is reported as one that doesn't
// exist.
func (r *reader) readTenant(ctx context.Context, name string) (*tenant, error) {
	if known, ok := r.memory.tenants.findRemembered(name); ok {
		return known, nil
	}
	found := &tenant{exists: Yes}
	lns := &v1alpha1.LNamespace{}
	err := r.api.Get(ctx, client.ObjectKey{Name: name}, lns)
	switch {
	case err == nil:
		found.spec = lns.Spec
	case apierrors.IsNotFound(err):
		found.exists = No
	case r.refused(err):
		found.exists = Unknown
		r.memory.unread.recordGap("get lnamespaces/" + name)
	default:
		return nil, fmt.Errorf("get LNamespace %s: %w", name, err)
	}
	r.memory.tenants.rememberValue(name, found)
	return found, nil
}

// readCaller returns the user and the groups as which the API server authenticates the caller.
func (r *reader) readCaller(ctx context.Context) (Identity, error) {
	if known, ok := r.memory.caller.findRemembered(""); ok {
		return known, nil
	}
	me := &authenticationv1.SelfSubjectReview{}
	if err := r.api.Create(ctx, me); err != nil && !r.refused(err) {
		return Identity{}, err
	}
	found := Identity{User: me.Status.UserInfo.Username, Groups: me.Status.UserInfo.Groups}
	r.memory.caller.rememberValue("", found)
	return found, nil
}
