// Program kubectl-warren is the kubectl plugin of Warren. Under the name kubectl-create-lns it is "kubectl create lns",
// and under the name kubectl_complete-warren it answers kubectl's shell completion.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that a kubeconfig may name

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/plugin"
)

// Set by the linker: -X main.version=v1.2.3 -X main.commit=….
var version, commit string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := plugin.Run(ctx, os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		invocation.NewBuild(version, commit))
	stop()
	os.Exit(status)
}
