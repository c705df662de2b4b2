package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// AnnotationValue is the value of an annotation.
// +kubebuilder:validation:MaxLength=8192
type AnnotationValue string

// SubNamespaceSpec describes what the namespace carries. Only keys that the configuration allows are transferred.
type SubNamespaceSpec struct {
	// labels of the namespace; keys that the configuration names in subNamespaces.labels.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="every key must be a valid label key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.labelValue().validate(self[k]).hasValue())",message="every value must be a valid label value (at most 63 characters)"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('tenancy.warren.dev/') && !k.contains('.tenancy.warren.dev/'))",message="keys of tenancy.warren.dev belong to the operator"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations of the namespace; keys that the configuration names in subNamespaces.annotations. The operator holds them in its
	// memory, with those of all tenants, so they are short.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="every key must be a valid annotation key"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('tenancy.warren.dev/') && !k.contains('.tenancy.warren.dev/'))",message="keys of tenancy.warren.dev belong to the operator"
	// +kubebuilder:validation:XValidation:rule="!('kubectl.kubernetes.io/last-applied-configuration' in self)",message="kubectl.kubernetes.io/last-applied-configuration can't be set"
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 8192",message="keys and values may have at most 8192 characters together; keep longer texts in a ConfigMap"
	// +optional
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// SubNamespaceStatus is what the operator reports about a sub-namespace.
type SubNamespaceStatus struct {
	// observedGeneration is the generation that the conditions speak of; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// conditions are Ready, Stalled, MetadataSynced.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a message may have at most 4096 characters: shorten it"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SubNamespace creates a namespace of its own name below the namespace that it is in, and owns its life.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=subns,categories=warren
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",message="becomes a Namespace name: at most 63 characters, no dots",messageExpression=`'"' + self.metadata.name + '" becomes a Namespace name: at most 63 characters, no dots; choose another'`,fieldPath=".metadata.name"
type SubNamespace struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes what the namespace carries. Only keys that the configuration allows are transferred.
	// +optional
	Spec SubNamespaceSpec `json:"spec,omitempty"`

	// status is what the operator reports.
	// +default={"observedGeneration": -1}
	// +optional
	Status SubNamespaceStatus `json:"status,omitempty"`
}

// SubNamespaceList is a list of SubNamespaces.
//
// +kubebuilder:object:root=true
type SubNamespaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SubNamespace `json:"items"`
}
