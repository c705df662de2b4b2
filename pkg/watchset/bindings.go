package watchset

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The resources of the group rbac.authorization.k8s.io.
const (
	roleKind               = "roles"
	roleBindingKind        = "rolebindings"
	clusterRoleKind        = "clusterroles"
	clusterRoleBindingKind = "clusterrolebindings"
)

// bindings records the RoleBindings and ClusterRoleBindings that give the Set's identity a role. So events of RBAC that
// concern other identities, which are most events in a cluster of many tenants, cause no reviews. The Set's lock guards
// it.
type bindings struct {
	held  map[bindingKey]roleKey
	roles map[roleKey]map[string]int // role -> namespace in which it is bound -> number of bindings; "" is cluster-wide
}

type bindingKey struct {
	kind string
	types.NamespacedName
}

// roleKey names a role; a ClusterRole has no namespace.
type roleKey types.NamespacedName

// binding is the part of a RoleBinding or ClusterRoleBinding that the Set reads: its name and its role. ours reports
// whether the Set's identity is one of its subjects.
type binding struct {
	metav1.PartialObjectMetadata
	role roleKey
	ours bool
}

// trimBindingObject returns a *binding in place of a RoleBinding or ClusterRoleBinding. A binding whose fields can't be
// read counts as the identity's own.
func (i *identity) trimBindingObject(object client.Object) client.Object {
	b := &binding{PartialObjectMetadata: *trimToNameOnly(object).(*metav1.PartialObjectMetadata), ours: true}
	ref, subjects, err := roleAndSubjectsOf(object)
	if err != nil {
		return b
	}
	b.role = roleKey{Name: ref.Name}
	if ref.Kind == "Role" {
		b.role.Namespace = object.GetNamespace()
	}
	b.ours = i.isAmongSubjects(subjects)
	return b
}

// roleAndSubjectsOf returns the role and the subjects of a RoleBinding or ClusterRoleBinding, in its Go type or, where
// Options.Scheme doesn't know RBAC, unstructured.
func roleAndSubjectsOf(object client.Object) (rbacv1.RoleRef, []rbacv1.Subject, error) {
	switch typed := object.(type) {
	case *rbacv1.RoleBinding:
		return typed.RoleRef, typed.Subjects, nil
	case *rbacv1.ClusterRoleBinding:
		return typed.RoleRef, typed.Subjects, nil
	case *unstructured.Unstructured:
		var full rbacv1.RoleBinding // a ClusterRoleBinding has the same fields
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(typed.Object, &full)
		return full.RoleRef, full.Subjects, err
	}
	return rbacv1.RoleRef{}, nil, fmt.Errorf("a binding is expected, not a %T", object)
}

// replaceBindingsOfKind replaces all recorded bindings of a kind by the identity's own among objects. Objects that are
// no *binding are ignored.
func (b *bindings) replaceBindingsOfKind(kind string, objects []client.Object) {
	for key := range b.held {
		if key.kind == kind {
			b.dropKnownBinding(key)
		}
	}
	for _, object := range objects {
		if bound, ok := object.(*binding); ok && bound.ours {
			b.recordBinding(bindingKey{kind, client.ObjectKeyFromObject(object)}, bound.role)
		}
	}
}

// recordRBACEvent records an event of RBAC and returns the namespaces in which the identity's rights may have changed;
// "" stands for the whole cluster. known reports whether all bindings are recorded; if not, a Role may be bound in its
// namespace, and a ClusterRole anywhere.
func (b *bindings) recordRBACEvent(kind string, object client.Object, gone, known bool) []string {
	if bound, ok := object.(*binding); ok {
		key := bindingKey{kind, client.ObjectKeyFromObject(object)}
		before := b.dropKnownBinding(key)
		if bound.ours && !gone {
			b.recordBinding(key, bound.role)
		}
		if before || bound.ours {
			return []string{object.GetNamespace()}
		}
		return nil
	}
	if !known {
		return []string{object.GetNamespace()}
	}
	var namespaces []string
	for namespace := range b.roles[roleKey(client.ObjectKeyFromObject(object))] {
		namespaces = append(namespaces, namespace)
	}
	return namespaces
}

func (b *bindings) recordBinding(key bindingKey, role roleKey) {
	if b.held == nil {
		b.held, b.roles = map[bindingKey]roleKey{}, map[roleKey]map[string]int{}
	}
	if b.roles[role] == nil {
		b.roles[role] = map[string]int{}
	}
	b.held[key] = role
	b.roles[role][key.Namespace]++
}

// dropKnownBinding removes a binding from the record, and reports whether the binding was recorded.
func (b *bindings) dropKnownBinding(key bindingKey) bool {
	role, known := b.held[key]
	if !known {
		return false
	}
	delete(b.held, key)
	if b.roles[role][key.Namespace]--; b.roles[role][key.Namespace] == 0 {
		delete(b.roles[role], key.Namespace)
	}
	if len(b.roles[role]) == 0 {
		delete(b.roles, role)
	}
	return true
}

// identity is the user as which the Set makes its requests, and that user's groups. While the user isn't known, every
// binding counts as the identity's own.
type identity struct {
	mu     sync.Mutex
	user   string
	groups []string
}

// readIdentityOnce asks the API server for the identity until it has answered once. Servers before 1.28, and servers
// that refuse a SelfSubjectReview, leave the identity unknown.
func (i *identity) readIdentityOnce(ctx context.Context, c *clients) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.user != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	review, err := c.identities.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil {
		i.user, i.groups = review.Status.UserInfo.Username, review.Status.UserInfo.Groups
	}
}

// isAmongSubjects reports whether one of a binding's subjects is the identity. It returns true while the identity isn't
// known.
func (i *identity) isAmongSubjects(subjects []rbacv1.Subject) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.user == "" || slices.ContainsFunc(subjects, i.matchesSubject)
}

func (i *identity) matchesSubject(subject rbacv1.Subject) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == i.user
	case rbacv1.GroupKind:
		return slices.Contains(i.groups, subject.Name)
	}
	return i.user == "system:serviceaccount:"+subject.Namespace+":"+subject.Name
}
