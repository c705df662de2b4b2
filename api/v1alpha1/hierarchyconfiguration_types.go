package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HierarchyConfigurationName is the one name that a HierarchyConfiguration may have.
const HierarchyConfigurationName = "hierarchy"

// RequiredChild is the name of a namespace.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type RequiredChild string

// MetadataKey is the exact key of a label or an annotation.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="!self.startsWith('tenancy.warren.dev/') && !self.contains('.tenancy.warren.dev/')",message="keys of tenancy.warren.dev and its subdomains can't be propagated"
type MetadataKey string

// HierarchyConfigurationSpec places a namespace in a tree and describes what its descendants inherit. Only people write it.
type HierarchyConfigurationSpec struct {
	// parent is the namespace to be placed below; "" asks to be a root, absent asks nothing.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	Parent *string `json:"parent,omitempty"`

	// allowCascadingDeletion lets the deletion of this namespace, or of one below, delete what is below it.
	// +kubebuilder:default=false
	// +optional
	AllowCascadingDeletion bool `json:"allowCascadingDeletion,omitempty"`

	// requiredChildren are the names of SubNamespaces that the operator keeps here.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +optional
	RequiredChildren []RequiredChild `json:"requiredChildren,omitempty"`

	// propagatedLabels are label keys whose values here reach all descendants.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PropagatedLabels []MetadataKey `json:"propagatedLabels,omitempty"`

	// propagatedAnnotations are annotation keys whose values here reach all descendants.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	PropagatedAnnotations []MetadataKey `json:"propagatedAnnotations,omitempty"`

	// overriddenLabels are keys of labels that this namespace does not inherit. The namespaces below get its own value, or none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	OverriddenLabels []MetadataKey `json:"overriddenLabels,omitempty"`

	// overriddenAnnotations are keys of annotations that this namespace does not inherit. The namespaces below get its own value, or none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	OverriddenAnnotations []MetadataKey `json:"overriddenAnnotations,omitempty"`
}

// HierarchyConfigurationStatus is what the operator reports about a namespace. Nothing is ever decided from it.
type HierarchyConfigurationStatus struct {
	// observedGeneration is the generation that the conditions speak of; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// parent of the namespace, as its label says.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Parent string `json:"parent,omitempty"`

	// requestedParentUID is the UID of the namespace that spec.parent named when it was set; absent once the namespace has that parent.
	// It keeps the operator from taking a later namespace of that name for it after a restart.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	RequestedParentUID string `json:"requestedParentUID,omitempty"`

	// depth of the namespace; absent when it is halted or in no tree.
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// childCount is the number of children.
	// +kubebuilder:default=0
	// +optional
	ChildCount int32 `json:"childCount,omitempty"`

	// children are the first 1,000 of them, in alphabetical order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Children []string `json:"children,omitempty"`

	// conditions are Ready, ParentApplied, Halted, MetadataSynced, ChildrenReady, Propagated.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a message may have at most 4096 characters: shorten it"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HierarchyConfiguration places the namespace that it is in, and reports what is wrong with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hier,categories=warren
// +kubebuilder:printcolumn:name="PARENT",type=string,JSONPath=`.status.parent`
// +kubebuilder:printcolumn:name="DEPTH",type=integer,JSONPath=`.status.depth`
// +kubebuilder:printcolumn:name="CHILDREN",type=integer,JSONPath=`.status.childCount`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'hierarchy'",message="the name must be \"hierarchy\"; a namespace holds one HierarchyConfiguration",fieldPath=".metadata.name"
type HierarchyConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people ask for.
	// +optional
	Spec HierarchyConfigurationSpec `json:"spec,omitempty"`

	// status is what the operator reports.
	// +default={"observedGeneration": -1}
	// +optional
	Status HierarchyConfigurationStatus `json:"status,omitempty"`
}

// HierarchyConfigurationList is a list of HierarchyConfigurations.
//
// +kubebuilder:object:root=true
type HierarchyConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HierarchyConfiguration `json:"items"`
}
