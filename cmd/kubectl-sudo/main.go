// Program kubectl-sudo is "kubectl sudo": one command of kubectl with the rights of a tenant's sudoers. Under the name
// kubectl_complete-sudo it answers kubectl's shell completion.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that a kubeconfig may name

	"github.com/warren-tenancy/warren/cmd/kubectl-sudo/sudo"
)

// Set by the linker: -X main.version=v1.2.3.
var version = "(devel)"

func main() {
	os.Exit(sudo.Run(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, version))
}
