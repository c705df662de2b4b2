package forest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// NamespaceOf returns the facts of a Namespace. The annotation last-applied-configuration of kubectl is left out: it is
// long, and the forest never reads it.
func NamespaceOf(n metav1.Object) *Namespace {
	annotations := n.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		annotations = maps.Clone(annotations)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	return &Namespace{
		Name: n.GetName(), UID: string(n.GetUID()), ResourceVersion: n.GetResourceVersion(),
		Labels: n.GetLabels(), Annotations: annotations, Created: n.GetCreationTimestamp().Time, Terminating: n.GetDeletionTimestamp() != nil,
	}
}

// SubOf returns the facts of a SubNamespace.
func SubOf(sub *v1alpha1.SubNamespace) *Sub {
	return &Sub{
		Parent: sub.Namespace, Name: sub.Name, UID: string(sub.UID),
		Labels: textMap(sub.Spec.Labels), Annotations: textMap(sub.Spec.Annotations),
		Created: sub.CreationTimestamp.Time, Deleting: !sub.DeletionTimestamp.IsZero(), NameLost: sub.NameLost(),
	}
}

// TenantOf returns the facts of an LNamespace.
func TenantOf(l *v1alpha1.LNamespace) *Tenant {
	t := &Tenant{
		Name: l.Name, UID: string(l.UID), Template: l.Spec.Template,
		AllowCascading: l.Spec.AllowCascadingDeletion, Deleting: !l.DeletionTimestamp.IsZero(),
		Creator: l.Annotations[v1alpha1.AnnotationCreator], Created: l.CreationTimestamp.Time, Listed: map[string]bool{},
	}
	for _, list := range [][]v1alpha1.Subject{l.Spec.Users, l.Spec.Managers, l.Spec.Sudoers} {
		for _, subject := range list {
			t.Listed[subject.String()] = true
		}
	}
	for _, manager := range l.Spec.Managers {
		t.Managers = append(t.Managers, manager.String())
	}
	if l.Spec.Limits != nil {
		t.Limits = *l.Spec.Limits
	}
	if l.Spec.Billing != nil {
		t.CostCenter, t.Owner = l.Spec.Billing.CostCenter, l.Spec.Billing.Owner
	}
	return t
}

// HierarchyOf returns the facts of the HierarchyConfiguration of namespace, without ParentUID.
func HierarchyOf(namespace, uid string, spec v1alpha1.HierarchyConfigurationSpec) *Hierarchy {
	return &Hierarchy{
		Namespace: namespace, UID: uid, Parent: spec.Parent, AllowCascading: spec.AllowCascadingDeletion,
		Required:   textList(spec.RequiredChildren),
		Propagated: [2][]string{textList(spec.PropagatedLabels), textList(spec.PropagatedAnnotations)},
		Overridden: [2][]string{textList(spec.OverriddenLabels), textList(spec.OverriddenAnnotations)},
	}
}

func textList[T ~string](values []T) []string {
	var result []string
	for _, v := range values {
		result = append(result, string(v))
	}
	return result
}

func textMap[V ~string](m map[string]V) map[string]string {
	result := make(map[string]string, len(m))
	for key, value := range m {
		result[key] = string(value)
	}
	return result
}
