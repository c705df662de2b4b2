// Package v1alpha1 has the types of the operator's configuration file. Package internal/configfile reads such a file: it knows the
// defaults and the rules.
//
// The file is not a CRD. It is read at the start of a process; a change of it is a roll-out of new processes.
//
// +kubebuilder:object:generate=true
package v1alpha1
