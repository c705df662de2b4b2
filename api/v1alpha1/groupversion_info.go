// Package v1alpha1 holds the API of Warren: its kinds, the keys that it reads and writes on other objects, and the
// types and reasons of its conditions.
//
// +kubebuilder:object:generate=true
// +groupName=tenancy.warren.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Domain is the API group of Warren and the prefix of all its keys.
const Domain = "tenancy.warren.dev"

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: Domain, Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&LNamespace{}, &LNamespaceList{},
		&SubNamespace{}, &SubNamespaceList{},
		&HierarchyConfiguration{}, &HierarchyConfigurationList{},
		&ResourceDistribution{}, &ResourceDistributionList{},
		&HierarchicalResourceQuota{}, &HierarchicalResourceQuotaList{},
		&SudoRequest{}, &SudoRequestList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
