package grants

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func editRules(tenant string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.Domain}, Resources: []string{"lnamespaces"}, ResourceNames: []string{tenant},
		Verbs: []string{"get", "update", "patch"},
	}}
}

func needsSudoUser(sudoers []v1alpha1.Subject) bool {
	for _, sudoer := range sudoers {
		if sudoer.Kind != v1alpha1.SubjectUser {
			return true
		}
	}
	return false
}

func tenantPair(tenant *v1alpha1.LNamespace, name, access string, rules []rbacv1.PolicyRule, subjects []v1alpha1.Subject) Pair {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Labels: tenantLabels(tenant.Name, access),
			OwnerReferences: []metav1.OwnerReference{Reference(tenant)},
		}
	}
	return newPair(meta, rules, boundSubjects(subjects))
}

func selfPair(user string, owners []metav1.OwnerReference, forms Forms) Pair {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name:            SelfName(user),
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName, v1alpha1.LabelAccess: v1alpha1.AccessSelf},
			Annotations:     map[string]string{v1alpha1.AnnotationUser: user},
			OwnerReferences: append([]metav1.OwnerReference(nil), owners...),
		}
	}
	subject := v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: user}
	return newPair(meta, forms.impersonateRules("users", user), boundSubjects([]v1alpha1.Subject{subject}))
}

// solePair returns the pair by which one user may edit the tenant's LNamespace and use sudo in the tenant. For sudo,
// the user impersonates their own user with the group of the tenant's sudoers. The name of the pair decides its rules
// and its subject. So no other user gets these rules by a change of the lists, or because the API server sees one of
// the two objects late. The group needn't be a subject: with sudo, requests still come from the same user, who may edit
// the LNamespace.
func solePair(tenant *v1alpha1.LNamespace, user string, forms Forms) Pair {
	rules := slices.Concat(forms.impersonateRules("users", user), forms.sudoRules(tenant.Name, false), editRules(tenant.Name))
	return tenantPair(tenant, SoleName(tenant.Name, user), v1alpha1.AccessSole, rules,
		[]v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: user}})
}

func newPair(meta func() metav1.ObjectMeta, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) Pair {
	role := &rbacv1.ClusterRole{ObjectMeta: meta(), Rules: rules}
	return Pair{
		Role:    role,
		Binding: &rbacv1.ClusterRoleBinding{ObjectMeta: meta(), RoleRef: toClusterRole(role.Name), Subjects: subjects},
	}
}

func roleBinding(tenant *v1alpha1.LNamespace, name, access, role string, subjects []v1alpha1.Subject) *rbacv1.RoleBinding {
	labels := tenantLabels(tenant.Name, access)
	labels[v1alpha1.LabelPropagate] = v1alpha1.ModeUpdate
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant.Name, Name: name, Labels: labels,
			// Copies carry the annotation, too: a copy that outlives its LNamespace must mean nothing to another one of
			// the same name.
			Annotations:     map[string]string{v1alpha1.AnnotationLNamespaceUID: string(tenant.UID)},
			OwnerReferences: []metav1.OwnerReference{Reference(tenant)},
		},
		RoleRef:  toClusterRole(role),
		Subjects: boundSubjects(subjects),
	}
}

func tenantLabels(tenant, access string) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.OperatorName,
		v1alpha1.LabelAccess:    access,
		v1alpha1.LabelTenant:    tenant,
	}
}

func toClusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindClusterRole, Name: name}
}

// boundSubjects returns subjects as subjects of RBAC, in the same order.
func boundSubjects(subjects []v1alpha1.Subject) []rbacv1.Subject {
	result := make([]rbacv1.Subject, 0, len(subjects))
	for _, s := range subjects {
		subject := rbacv1.Subject{Kind: string(s.Kind), Name: s.Name, Namespace: s.Namespace}
		if s.Kind != v1alpha1.SubjectServiceAccount {
			subject.APIGroup = rbacv1.GroupName
		}
		result = append(result, subject)
	}
	return result
}
