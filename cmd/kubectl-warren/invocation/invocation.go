// Package invocation is one call of the plugin: the flags and arguments that its commands share, how they reach the API
// server, complete words and print answers. The packages of the commands import this one.
package invocation

import (
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProgramName is the name under which kubectl finds the plugin, and under which the API server knows it.
const ProgramName = "kubectl-warren"

// Invocation is what the commands of one call share: kubectl's flags, the streams, and what the program was built from.
type Invocation struct {
	Flags   *genericclioptions.ConfigFlags
	Streams genericiooptions.IOStreams
	Build   Build
	// Restrict, if it is set, wraps each client that Connect and ConnectDiscovering return, to hide what its user must not
	// read.
	Restrict func(client.Client) client.Client
}

// UsesNamespace is the annotation of commands to which --namespace means something. InsteadOfNamespace is that of other
// commands: what to write in its place.
const (
	UsesNamespace      = "uses-namespace"
	InsteadOfNamespace = "instead-of-namespace"
)
