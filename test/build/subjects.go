package build

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// UserSubjects lists users of any kind.
func (b *LNamespace) UserSubjects(subjects ...v1alpha1.Subject) *LNamespace {
	b.Spec.Users = append(b.Spec.Users, subjects...)
	return b
}

// ManagerSubjects lists managers of any kind.
func (b *LNamespace) ManagerSubjects(subjects ...v1alpha1.Subject) *LNamespace {
	b.Spec.Managers = append(b.Spec.Managers, subjects...)
	return b
}

// SudoerSubjects lists sudoers of any kind.
func (b *LNamespace) SudoerSubjects(subjects ...v1alpha1.Subject) *LNamespace {
	b.Spec.Sudoers = append(b.Spec.Sudoers, subjects...)
	return b
}

// RBACGroup is an RBAC subject of kind Group.
func RBACGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// RBACUser is an RBAC subject of kind User.
func RBACUser(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// RoleBinding binds a ClusterRole to subjects in one namespace.
func RoleBinding(namespace, name, clusterRole string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   subjects,
	}
}
