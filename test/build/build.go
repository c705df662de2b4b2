// Package build makes objects for tests. Chained calls add what matters to the case.
package build

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// LNamespace is a tenant under construction.
type LNamespace struct{ v1alpha1.LNamespace }

// Tenant starts an LNamespace.
func Tenant(name string) *LNamespace {
	return &LNamespace{v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Users lists users by name.
func (b *LNamespace) Users(names ...string) *LNamespace {
	b.Spec.Users = append(b.Spec.Users, Users(names...)...)
	return b
}

// Managers lists managers by user name.
func (b *LNamespace) Managers(names ...string) *LNamespace {
	b.Spec.Managers = append(b.Spec.Managers, Users(names...)...)
	return b
}

// Sudoers lists sudoers by user name.
func (b *LNamespace) Sudoers(names ...string) *LNamespace {
	b.Spec.Sudoers = append(b.Spec.Sudoers, Users(names...)...)
	return b
}

// Cascading allows cascading deletion.
func (b *LNamespace) Cascading() *LNamespace {
	b.Spec.AllowCascadingDeletion = true
	return b
}

// Template references a template.
func (b *LNamespace) Template(name string) *LNamespace {
	b.Spec.Template = name
	return b
}

// Limits bounds the tree; a negative number sets no limit.
func (b *LNamespace) Limits(subNamespaces, depth int32) *LNamespace {
	b.Spec.Limits = &v1alpha1.Limits{}
	if subNamespaces >= 0 {
		b.Spec.Limits.SubNamespaces = &subNamespaces
	}
	if depth >= 0 {
		b.Spec.Limits.Depth = &depth
	}
	return b
}

// Object is the LNamespace.
func (b *LNamespace) Object() *v1alpha1.LNamespace { return b.DeepCopy() }

// Users are subjects of kind User.
func Users(names ...string) []v1alpha1.Subject {
	var subjects []v1alpha1.Subject
	for _, name := range names {
		subjects = append(subjects, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name})
	}
	return subjects
}

// Group is a subject of kind Group.
func Group(name string) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: name}
}

// ServiceAccount is a subject of kind ServiceAccount.
func ServiceAccount(namespace, name string) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: name}
}

// Namespace makes a Namespace; labels come in pairs of key and value.
func Namespace(name string, labels ...string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs(labels)}}
}

// Root makes a root namespace that no LNamespace owns.
func Root(name string, labels ...string) *corev1.Namespace {
	return Namespace(name, append(labels, v1alpha1.LabelType, v1alpha1.TypeRoot)...)
}

// Template makes a template namespace.
func Template(name string, labels ...string) *corev1.Namespace {
	return Namespace(name, append(labels, v1alpha1.LabelType, v1alpha1.TypeTemplate)...)
}

// Child makes a namespace that is placed below parent and not bound to a SubNamespace.
func Child(name, parent string, labels ...string) *corev1.Namespace {
	return Namespace(name, append(labels, v1alpha1.LabelParent, parent)...)
}

// SubNamespace makes a SubNamespace name in parent; labels are those of its spec.
func SubNamespace(parent, name string, labels ...string) *v1alpha1.SubNamespace {
	sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name}}
	for key, value := range pairs(labels) {
		if sub.Spec.Labels == nil {
			sub.Spec.Labels = map[string]v1alpha1.LabelValue{}
		}
		sub.Spec.Labels[key] = v1alpha1.LabelValue(value)
	}
	return sub
}

// Secret makes an Opaque Secret with one key; labels come in pairs.
func Secret(namespace, name, value string, labels ...string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: pairs(labels)},
		Data:       map[string][]byte{"key": []byte(value)},
	}
}

// ConfigMap makes a ConfigMap with one key; labels come in pairs.
func ConfigMap(namespace, name, value string, labels ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: pairs(labels)},
		Data:       map[string]string{"key": value},
	}
}

func pairs(list []string) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}
