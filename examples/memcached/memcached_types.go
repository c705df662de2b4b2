// +kubebuilder:object:generate=true
// +groupName=cache.example.com
// +versionName=v1alpha1
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1alpha1"}

// addToScheme makes the kind known to clients.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}

// Memcached is a group of memcached servers.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state.status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.state.message`
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   MemcachedSpec   `json:"spec,omitempty"`
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec is what is wanted.
type MemcachedSpec struct {
	// Size is how many servers there are.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +kubebuilder:default=1
	Size int32 `json:"size,omitempty"`
}

// MemcachedStatus is what came of it.
type MemcachedStatus struct {
	State MemcachedState `json:"state,omitempty"`
	// Nodes are the names of the Pods, sorted. What can't be seen any more stays as it was seen last.
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MemcachedState is the outcome for people.
type MemcachedState struct {
	// Status is Succeeded or Failed.
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// MemcachedList is a list of Memcacheds.
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}
