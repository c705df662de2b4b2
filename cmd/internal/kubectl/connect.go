package kubectl

import (
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// Config is how to reach the API server, as kubectl would with these flags. The agent, such as kubectl-warren/v1.2.3, is the name under
// which the API server knows the program; warnings of the API server go to errOut, each once.
func Config(flags *genericclioptions.ConfigFlags, errOut io.Writer, agent string) (*rest.Config, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server by the kubeconfig and flags: %w", err)
	}
	config.QPS = -1 // no limit here: the server's fairness decides
	config.UserAgent = agent
	config.WarningHandler = rest.NewWarningWriter(terminal.NewWriter(errOut), rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}
