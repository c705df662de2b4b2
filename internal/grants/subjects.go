package grants

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Subjects returns the subjects of a binding; none for a ClusterRole.
func Subjects(object Object) []rbacv1.Subject {
	switch binding := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		return binding.Subjects
	case *rbacv1.RoleBinding:
		return binding.Subjects
	}
	return nil
}

func setSubjects(object Object, subjects []rbacv1.Subject) {
	switch binding := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		binding.Subjects = slices.Clone(subjects)
	case *rbacv1.RoleBinding:
		binding.Subjects = slices.Clone(subjects)
	}
}

func roleRef(object Object) (*rbacv1.RoleRef, bool) {
	switch binding := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		return &binding.RoleRef, true
	case *rbacv1.RoleBinding:
		return &binding.RoleRef, true
	}
	return nil, false
}

// SameSubjects reports whether both objects have the same subjects in the same order.
func SameSubjects(a, b Object) bool { return slices.Equal(Subjects(a), Subjects(b)) }

// Narrow returns the existing binding without the subjects that desired doesn't have, or false if there are none to
// remove. Nothing else changes.
func Narrow(existing, desired Object) (Object, bool) {
	keep := Subjects(desired)
	narrowed := slices.DeleteFunc(slices.Clone(Subjects(existing)), func(s rbacv1.Subject) bool { return !slices.Contains(keep, s) })
	if len(narrowed) == len(Subjects(existing)) {
		return nil, false
	}
	binding := existing.DeepCopyObject().(Object)
	setSubjects(binding, narrowed)
	return binding, true
}

// Without returns the binding without any subject.
func Without(binding Object) Object {
	empty := binding.DeepCopyObject().(Object)
	setSubjects(empty, nil)
	return empty
}

// Holders returns the subjects to which existing bindings grant what a list of the tenant grants.
func (a Actual) Holders(list List, tenant string) []rbacv1.Subject {
	var holders []rbacv1.Subject
	for _, key := range slices.SortedFunc(maps.Keys(a), compareKeys) {
		if !slices.Contains(ListsOf(key, tenant), list) {
			continue
		}
		for _, s := range Subjects(a[key]) {
			if !slices.Contains(holders, s) {
				holders = append(holders, s)
			}
		}
	}
	return holders
}

// Minus returns the names of the subjects in one that are not in other, such as "ServiceAccount ci/deployer".
func Minus(one, other []rbacv1.Subject) []string {
	var names []string
	for _, s := range one {
		if slices.Contains(other, s) {
			continue
		}
		if s.Namespace != "" {
			names = append(names, s.Kind+" "+s.Namespace+"/"+s.Name)
		} else {
			names = append(names, s.Kind+" "+s.Name)
		}
	}
	return names
}
