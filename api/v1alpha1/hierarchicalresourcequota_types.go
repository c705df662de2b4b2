package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Budget is what namespaces may use together, by the resources of a ResourceQuota that Kubernetes counts, without scopes. Write a fraction
// as text ("1.5") or in thousandths (1500m): the API server takes no unquoted one. The limits above a namespace have at most 64 resources
// together, and the HierarchicalResourceQuotas of a tree 4096: those nearer to the root count first.
//
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['pods','services','replicationcontrollers','resourcequotas','secrets','configmaps','persistentvolumeclaims','services.nodeports','services.loadbalancers','cpu','memory','ephemeral-storage','requests.cpu','requests.memory','requests.ephemeral-storage','requests.storage','limits.cpu','limits.memory','limits.ephemeral-storage'] || size(k) <= 253 && k.matches('^(requests[.])?hugepages-[A-Za-z0-9]{1,40}$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be a resource that a ResourceQuota limits",messageExpression="self.filter(k, !(k in ['pods','services','replicationcontrollers','resourcequotas','secrets','configmaps','persistentvolumeclaims','services.nodeports','services.loadbalancers','cpu','memory','ephemeral-storage','requests.cpu','requests.memory','requests.ephemeral-storage','requests.storage','limits.cpu','limits.memory','limits.ephemeral-storage'] || size(k) <= 253 && k.matches('^(requests[.])?hugepages-[A-Za-z0-9]{1,40}$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')))[0] + ': is no resource that a ResourceQuota limits: write one such as pods, requests.cpu or count/jobs.batch'"
// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['resourcequotas','count/resourcequotas','count/limitranges','count/networkpolicies.networking.k8s.io','count/roles.rbac.authorization.k8s.io','count/rolebindings.rbac.authorization.k8s.io','count/subnamespaces.tenancy.warren.dev','count/hierarchyconfigurations.tenancy.warren.dev']))",message="what the operator writes in the namespaces can't be limited",messageExpression="self.filter(k, k in ['resourcequotas','count/resourcequotas','count/limitranges','count/networkpolicies.networking.k8s.io','count/roles.rbac.authorization.k8s.io','count/rolebindings.rbac.authorization.k8s.io','count/subnamespaces.tenancy.warren.dev','count/hierarchyconfigurations.tenancy.warren.dev'])[0] + ': would keep out what the operator writes here: leave it out'"
// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="an amount must be 0 or more",messageExpression="self.filter(k, string(self[k]).startsWith('-'))[0] + ': must be 0 or more: 0 allows none'"
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^((requests|limits)[.])?cpu$|^(requests[.])?hugepages-[A-Za-z0-9]+$|^((requests|limits)[.])?(memory|storage|ephemeral-storage)$|[.]storageclass[.]storage[.]k8s[.]io/requests[.]storage$') || type(self[k]) == int || string(self[k]).matches('[eE][-+]?[0-9]{3}') || quantity(self[k]).isInteger())",message="an amount must be whole, except of cpu, memory and storage",messageExpression="self.filter(k, !(k.matches('^((requests|limits)[.])?cpu$|^(requests[.])?hugepages-[A-Za-z0-9]+$|^((requests|limits)[.])?(memory|storage|ephemeral-storage)$|[.]storageclass[.]storage[.]k8s[.]io/requests[.]storage$') || type(self[k]) == int || string(self[k]).matches('[eE][-+]?[0-9]{3}') || quantity(self[k]).isInteger()))[0] + ': must be a whole number: only cpu, memory and storage have fractions'"
// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.contains('/') && !k.matches('^count/|^requests[.]|[.]storageclass[.]storage[.]k8s[.]io/(requests[.]storage|persistentvolumeclaims)$|[.]deviceclass[.]resource[.]k8s[.]io/devices$'))",message="each key must be one that Kubernetes counts",messageExpression="self.filter(k, k.contains('/') && !k.matches('^count/|^requests[.]|[.]storageclass[.]storage[.]k8s[.]io/(requests[.]storage|persistentvolumeclaims)$|[.]deviceclass[.]resource[.]k8s[.]io/devices$'))[0] + ': is not counted by Kubernetes: write requests.NAME for an extended resource, or count/NAME for objects'"
// +kubebuilder:validation:XValidation:rule="!self.exists(k, (k.contains('/') || !k.matches('memory$|storage$|^hugepages-|[.]hugepages-')) && (type(self[k]) == int ? self[k] > 9007199254740991 : !string(self[k]).matches('[eE][-+]?[0-9]{3}') && quantity(self[k]).isGreaterThan(quantity('9007199254740991'))))",message="an amount must be at most 9007199254740991, except of memory and storage",messageExpression="self.filter(k, (k.contains('/') || !k.matches('memory$|storage$|^hugepages-|[.]hugepages-')) && (type(self[k]) == int ? self[k] > 9007199254740991 : !string(self[k]).matches('[eE][-+]?[0-9]{3}') && quantity(self[k]).isGreaterThan(quantity('9007199254740991'))))[0] + ': must be at most 9007199254740991: the API server refuses larger numbers'"
// +kubebuilder:validation:XValidation:rule="!self.exists(k, string(self[k]).matches('[eE][-+]?[0-9]{3}'))",message="an amount must have an exponent of at most two digits",messageExpression="self.filter(k, string(self[k]).matches('[eE][-+]?[0-9]{3}'))[0] + ': must have an exponent of at most two digits'"
type Budget map[corev1.ResourceName]resource.Quantity

// HierarchicalResourceQuotaSpec states what a part of a tree may use.
type HierarchicalResourceQuotaSpec struct {
	// hard is what this namespace and all below it may use together.
	// +optional
	Hard Budget `json:"hard,omitempty"`
}

// BudgetStatus is what namespaces use together of what they may.
type BudgetStatus struct {
	// hard is what they may use.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, string(self[k]).matches('[eE][-+]?[0-9]{3}'))",message="an amount must have an exponent of at most two digits"
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`

	// used is what they use.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, string(self[k]).matches('[eE][-+]?[0-9]{3}'))",message="an amount must have an exponent of at most two digits"
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`

	// free is what is left; 0 where more is used than hard allows.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, string(self[k]).matches('[eE][-+]?[0-9]{3}'))",message="an amount must have an exponent of at most two digits"
	// +optional
	Free corev1.ResourceList `json:"free,omitempty"`
}

// HierarchicalResourceQuotaStatus is what the operator reports.
type HierarchicalResourceQuotaStatus struct {
	BudgetStatus `json:",inline"`

	// observedGeneration is the generation that the condition speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions has Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a message may have at most 4096 characters: shorten it"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HierarchicalResourceQuota is a budget for a namespace and all below it. It holds beside the budget of the tenant, and can only narrow it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hrq,categories=warren
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="USED",type=string,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="HARD",type=string,JSONPath=`.status.hard`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type HierarchicalResourceQuota struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec states what the namespace and all below it may use.
	// +kubebuilder:default={}
	// +optional
	Spec HierarchicalResourceQuotaSpec `json:"spec,omitempty"`

	// status is what the operator reports.
	// +optional
	Status HierarchicalResourceQuotaStatus `json:"status,omitempty"`
}

// HierarchicalResourceQuotaList is a list of HierarchicalResourceQuotas.
//
// +kubebuilder:object:root=true
type HierarchicalResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HierarchicalResourceQuota `json:"items"`
}
