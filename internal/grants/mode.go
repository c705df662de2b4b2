package grants

import (
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Two modes are never in force at once, but during a change from one to the other the rules of a tenant hold both forms
// of impersonation.

// OtherMode returns the mode that isn't mode.
func OtherMode(mode v1alpha1.SudoMode) v1alpha1.SudoMode {
	if mode == v1alpha1.SudoConstrained {
		return v1alpha1.SudoLegacy
	}
	return v1alpha1.SudoConstrained
}

// SudoForms returns the forms in the existing ClusterRoles by which sudoers become the group of the tenant.
func (a Actual) SudoForms(tenant string) Forms {
	var forms Forms
	for key, object := range a {
		if key.Kind == kindClusterRole && LetsSudo(key.Name, tenant) {
			forms = forms.Or(WrittenForms(object))
		}
	}
	return forms
}

// SelfRoles returns the existing ClusterRoles of self pairs, by user.
func (a Actual) SelfRoles() map[string]*rbacv1.ClusterRole {
	roles := map[string]*rbacv1.ClusterRole{}
	for key, object := range a {
		if user, isSelf := SelfUser(key.Name); isSelf && key.Kind == kindClusterRole {
			roles[user] = object.(*rbacv1.ClusterRole)
		}
	}
	return roles
}

// WrittenForms returns the forms that the operator has written into an existing ClusterRole. It returns none if another
// client has changed the rules, so that such a change prolongs no form.
func WrittenForms(role Object) Forms {
	expected, ok := Expected(role)
	if !ok || !grantsAlike(role, expected) {
		return Forms{}
	}
	return FormsIn(role.(*rbacv1.ClusterRole))
}
