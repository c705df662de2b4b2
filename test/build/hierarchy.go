package build

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Wish is something that a HierarchyConfiguration asks for.
type Wish func(*v1alpha1.HierarchyConfigurationSpec)

// Hierarchy is the HierarchyConfiguration of a namespace.
func Hierarchy(namespace string, wishes ...Wish) *v1alpha1.HierarchyConfiguration {
	hc := &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.HierarchyConfigurationName}}
	for _, wish := range wishes {
		wish(&hc.Spec)
	}
	return hc
}

// Below asks for a place below parent; "" asks to be a root.
func Below(parent string) Wish {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) { spec.Parent = &parent }
}

// Requiring asks for children.
func Requiring(names ...v1alpha1.RequiredChild) Wish {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) { spec.RequiredChildren = names }
}

// Propagating lets the namespaces below inherit labels.
func Propagating(keys ...v1alpha1.MetadataKey) Wish {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) { spec.PropagatedLabels = keys }
}

// Overriding stops the inheritance of labels from above.
func Overriding(keys ...v1alpha1.MetadataKey) Wish {
	return func(spec *v1alpha1.HierarchyConfigurationSpec) { spec.OverriddenLabels = keys }
}

// Cascades lets a deletion delete the namespaces below, too.
func Cascades(spec *v1alpha1.HierarchyConfigurationSpec) { spec.AllowCascadingDeletion = true }
