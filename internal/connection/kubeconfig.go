package connection

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// LoadKubeconfig reads the kubeconfig at path; for "", the one that kubectl would read. It is for those subcommands of the manager that
// people run by hand. The client has no rate limit of its own: the API server's priority and fairness limits it.
func LoadKubeconfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no access to an API server: set --kubeconfig or KUBECONFIG: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}
