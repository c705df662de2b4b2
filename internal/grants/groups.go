package grants

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// SudoersAmong returns the tenant whose sudoers get what is bound to a subject: the group of sudoers, or SudoUser, which
// sudoers who are a Group or a ServiceAccount impersonate.
func SudoersAmong(subject rbacv1.Subject) (tenant string, is bool) {
	switch subject.Kind {
	case rbacv1.UserKind:
		return strings.CutPrefix(subject.Name, v1alpha1.SudoUserPrefix)
	case rbacv1.GroupKind:
		return strings.CutSuffix(subject.Name, v1alpha1.SudoersSuffix)
	}
	return "", false
}

// groupsOfSudoers returns the groups of sudoers that get what a binding grants.
func groupsOfSudoers(binding Object) []string {
	var names []string
	for _, subject := range Subjects(binding) {
		if tenant, is := SudoersAmong(subject); is && !slices.Contains(names, v1alpha1.SudoersGroup(tenant)) {
			names = append(names, v1alpha1.SudoersGroup(tenant))
		}
	}
	return names
}

// BoundGroup is a group of sudoers that a foreign binding names.
type BoundGroup struct {
	Name string
	// Leftover reports that the operator wrote the binding, for an earlier LNamespace of the same name.
	Leftover bool
}

// ForeignGroups returns the groups of sudoers that a binding names. It returns none for the operator's own
// ClusterRoleBindings, and none for copies that it wrote for the LNamespace that has the tenant's name now. A binding
// in a root counts even if it is the operator's own, because StopsGrant lets it pass. uidOf returns the UID of the
// LNamespace of a name; "" if there is none.
func ForeignGroups(binding Object, uidOf func(tenant string) types.UID) []BoundGroup {
	var found []BoundGroup
	for _, group := range groupsOfSudoers(binding) {
		tenant := binding.GetLabels()[v1alpha1.LabelTenant]
		switch {
		case binding.GetNamespace() == "" && IsOurs(binding):
		case !isSudoersCopy(binding, group):
			found = append(found, BoundGroup{Name: group})
		default: // where no LNamespace has the name, the copy gives nobody anything
			if uid := uidOf(tenant); uid != "" && binding.GetAnnotations()[v1alpha1.AnnotationLNamespaceUID] != string(uid) {
				found = append(found, BoundGroup{Name: group, Leftover: true})
			}
		}
	}
	return found
}

// isSudoersCopy reports whether a binding is the operator's own copy of the RoleBinding that binds this group of
// sudoers.
func isSudoersCopy(binding Object, group string) bool {
	labels := binding.GetLabels()
	return binding.GetNamespace() != "" && binding.GetName() == SudoersBinding && labels[v1alpha1.LabelInheritedFrom] != "" &&
		labels[v1alpha1.LabelAccess] == v1alpha1.AccessSudoers && v1alpha1.SudoersGroup(labels[v1alpha1.LabelTenant]) == group
}

// IsOurs reports whether a binding is one that the operator writes for a tenant.
func IsOurs(binding Object) bool {
	expected, ok := Expected(binding)
	return ok && Removable(binding, expected)
}

// WasGranted reports whether sudoers of this LNamespace held sudo before, with no foreign binding of their group in the
// way. If so, status.sudoGrantedAt is set. Sudo may have been granted before that field existed. So an existing pair
// counts, too, if this LNamespace owns it, its binding has subjects, and its role has the legacy form.
func WasGranted(tenant *v1alpha1.LNamespace, actual Actual) bool {
	if tenant.Status.SudoGrantedAt != nil {
		return true
	}
	for key, binding := range actual {
		role := actual[Key{Kind: kindClusterRole, Name: key.Name}]
		if role == nil || len(Subjects(binding)) == 0 || !slices.Contains(ListsOf(key, tenant.Name), ListSudoers) {
			continue
		}
		own := slices.ContainsFunc(Owners(binding), func(o metav1.OwnerReference) bool { return o.UID == tenant.UID })
		if own && FormsIn(role.(*rbacv1.ClusterRole)).Legacy {
			return true
		}
	}
	return false
}

// StopsGrant reports whether a foreign binding of the tenant's group stops the tenant's first grant of sudo. namespace
// is that of the binding, "" for a ClusterRoleBinding. A binding doesn't stop the grant if it is in the root, or in a
// namespace of the tree that is not halted: a halted namespace may belong to an earlier LNamespace of the same name. A
// leftover, which the operator wrote for such an earlier LNamespace, stops the grant in every namespace.
func StopsGrant(tenant, namespace string, leftover bool, inTree func(namespace string) bool) bool {
	return leftover || namespace == "" || (namespace != tenant && !inTree(namespace))
}

// IsCopied reports whether an access object is a copy below a root, which controllers/copies writes.
func IsCopied(object metav1.Object) bool {
	labels := object.GetLabels()
	return labels[v1alpha1.LabelInheritedFrom] != "" && object.GetNamespace() != labels[v1alpha1.LabelTenant]
}

// IsLeftToCollector reports whether a tenant has released the object by a mark (see Marked), so that the garbage
// collector deletes it.
func IsLeftToCollector(object Object) bool {
	return slices.ContainsFunc(Owners(object), func(o metav1.OwnerReference) bool { return o.UID == Marked })
}
