// Package v1alpha1 is the configuration file of the operator: its types, defaults, strict loading and validation.
//
// Load and Parse report every problem of a file together, one per line, as "FILE: path: problem". What they return is
// complete: defaults are filled in, enums hold known values, patterns compile. Whatever needs a cluster (is a kind
// served, is it namespaced, does a ClusterRole exist) is judged elsewhere, so that a file can be validated offline.
//
// The file is not a CRD. It is read at the start of a process; a change of it is a roll-out of new processes.
//
// +kubebuilder:object:generate=true
package v1alpha1
