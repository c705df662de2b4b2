package kubectl

import (
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// Config returns the configuration of a client that reaches the API server as kubectl would with these flags. The
// agent, such as kubectl-warren/v1.2.3, is the name under which the API server knows the program. Warnings of the API
// server are written to errOut, each once.
func Config(flags *genericclioptions.ConfigFlags, errOut io.Writer, agent string) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server by the kubeconfig and flags: %w", err)
	}
	config.QPS = -1 // no limit in this client: the API server's flow control limits requests
	config.UserAgent = agent
	config.WarningHandler = rest.NewWarningWriter(terminal.NewWriter(errOut), rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}
