package grants

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// GroupsOfSudoers names the groups among a binding's subjects that may be those of a tenant. The user that a tenant's sudoers
// become who are a group or a service account stands for its group: what is bound to the one is as good as bound to the other.
func GroupsOfSudoers(binding metav1.Object) []string {
	object, ok := binding.(Object)
	if !ok {
		return nil
	}
	var names []string
	for _, subject := range Subjects(object) {
		group := subject.Name
		if tenant, isSudo := strings.CutPrefix(subject.Name, v1alpha1.SudoUserPrefix); isSudo && subject.Kind == rbacv1.UserKind {
			group = v1alpha1.SudoersGroup(tenant)
		} else if subject.Kind != rbacv1.GroupKind || !strings.HasSuffix(group, v1alpha1.SudoersSuffix) {
			continue
		}
		if !slices.Contains(names, group) {
			names = append(names, group)
		}
	}
	return names
}

// IsSudoersCopy says whether a RoleBinding is the operator's own copy of what the sudoers of that group hold in their root.
func IsSudoersCopy(binding *rbacv1.RoleBinding, group string) bool {
	labels := binding.Labels
	return binding.Name == SudoersBinding && labels[v1alpha1.LabelInheritedFrom] != "" &&
		labels[v1alpha1.LabelAccess] == v1alpha1.AccessSudoers && v1alpha1.SudoersGroup(labels[v1alpha1.LabelTenant]) == group
}

// IsOurs says whether a binding is one that the operator writes for a tenant.
func IsOurs(binding Object) bool {
	expected, ok := Expected(binding)
	return ok && Removable(binding, expected)
}

// WasGranted says whether sudoers of this LNamespace ever had a right by a check of these bindings, or had it in the legacy form
// before the operator wrote down when.
func WasGranted(tenant *v1alpha1.LNamespace, desired Pair, actual Actual) bool {
	if tenant.Status.SudoGrantedAt != nil {
		return true
	}
	binding, role := actual[KeyOf(desired.Binding)], actual[KeyOf(desired.Role)]
	if binding == nil || role == nil || len(Subjects(binding)) == 0 {
		return false
	}
	own := slices.ContainsFunc(Owners(binding), func(o metav1.OwnerReference) bool { return o.UID == tenant.UID })
	return own && FormsIn(role.(*rbacv1.ClusterRole)).Legacy
}

// StopsGrant says whether somebody else's binding of the tenant's group, which stands in namespace or in none, stands in the way of
// the tenant's first grant of sudo: everywhere but in the tree as it is soundly. A halted namespace is another LNamespace's of the same
// name, as likely as not, and so is what the operator left there: a leftover.
func StopsGrant(tenant, namespace string, leftover bool, inTree func(namespace string) bool) bool {
	return leftover || namespace == "" || (namespace != tenant && !inTree(namespace))
}

// IsCopied says whether an access object is a copy below a root, which is propagation's to write.
func IsCopied(object metav1.Object) bool {
	labels := object.GetLabels()
	return labels[v1alpha1.LabelInheritedFrom] != "" && object.GetNamespace() != labels[v1alpha1.LabelTenant]
}

// IsLeftToCollector says whether a tenant has given the object up by a mark, so that the garbage collector takes it.
func IsLeftToCollector(object Object) bool {
	return slices.ContainsFunc(Owners(object), func(o metav1.OwnerReference) bool { return o.UID == Marked })
}
