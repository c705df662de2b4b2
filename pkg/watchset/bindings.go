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

// Resources of RBAC.
const (
	roleKind               = "roles"
	roleBindingKind        = "rolebindings"
	clusterRoleKind        = "clusterroles"
	clusterRoleBindingKind = "clusterrolebindings"
)

// bindings are those that give the Set's identity a role. They tell whose rights an event of RBAC may change: in a cluster of many
// tenants most events concern somebody else. The Set's lock guards them.
type bindings struct {
	held  map[bindingKey]roleKey
	roles map[roleKey]map[string]int // role -> namespace in which it is bound -> bindings; "" is cluster-wide
}

type bindingKey struct {
	kind string
	types.NamespacedName
}

// roleKey names a role; a ClusterRole has no namespace.
type roleKey types.NamespacedName

// binding is what is kept of a RoleBinding or ClusterRoleBinding while it is passed on.
type binding struct {
	metav1.PartialObjectMetadata
	role roleKey
	ours bool
}

// trimBinding keeps what matters of a binding. One that can't be read counts as ours.
func (s *Set) trimBinding(object client.Object) client.Object {
	b := &binding{PartialObjectMetadata: *nameOnly(object).(*metav1.PartialObjectMetadata), ours: true}
	ref, subjects, err := readBinding(object)
	if err != nil {
		return b
	}
	b.role = roleKey{Name: ref.Name}
	if ref.Kind == "Role" {
		b.role.Namespace = object.GetNamespace()
	}
	b.ours = s.identity.isIn(subjects)
	return b
}

// readBinding returns the role and the subjects of a RoleBinding or ClusterRoleBinding, which Options.Scheme may know or not.
func readBinding(object client.Object) (rbacv1.RoleRef, []rbacv1.Subject, error) {
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
	return rbacv1.RoleRef{}, nil, fmt.Errorf("a binding came as %T", object)
}

// replaceKind takes all bindings of a kind at once.
func (b *bindings) replaceKind(kind string, objects []client.Object) {
	for key := range b.held {
		if key.kind == kind {
			b.dropBinding(key)
		}
	}
	for _, object := range objects {
		if bound, ok := object.(*binding); ok && bound.ours {
			b.keep(bindingKey{kind, client.ObjectKeyFromObject(object)}, bound.role)
		}
	}
}

// noteChange notes an event of RBAC and returns the namespaces in which the identity's rights may be others than before; "" stands
// for the whole cluster. Unless all bindings are known, a role may be bound anywhere where it can be.
func (b *bindings) noteChange(kind string, object client.Object, gone, known bool) []string {
	if bound, ok := object.(*binding); ok {
		key := bindingKey{kind, client.ObjectKeyFromObject(object)}
		before := b.dropBinding(key)
		if bound.ours && !gone {
			b.keep(key, bound.role)
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

func (b *bindings) keep(key bindingKey, role roleKey) {
	if b.held == nil {
		b.held, b.roles = map[bindingKey]roleKey{}, map[roleKey]map[string]int{}
	}
	if b.roles[role] == nil {
		b.roles[role] = map[string]int{}
	}
	b.held[key] = role
	b.roles[role][key.Namespace]++
}

// dropBinding forgets a binding. It says whether it was known.
func (b *bindings) dropBinding(key bindingKey) bool {
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

// identity is who the Set is. While that isn't known, every binding counts as one of its own.
type identity struct {
	mu     sync.Mutex
	user   string
	groups []string
}

// learnIdentity asks the server once. Servers before 1.28, and those that refuse it, leave the identity unknown.
func (i *identity) learnIdentity(ctx context.Context, c *clients) {
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

// isIn says whether one of a binding's subjects is the identity, or may be it.
func (i *identity) isIn(subjects []rbacv1.Subject) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.user == "" || slices.ContainsFunc(subjects, i.is)
}

func (i *identity) is(subject rbacv1.Subject) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == i.user
	case rbacv1.GroupKind:
		return slices.Contains(i.groups, subject.Name)
	}
	return i.user == "system:serviceaccount:"+subject.Namespace+":"+subject.Name
}
