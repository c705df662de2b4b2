package plugin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ACC-T02: if the comparison fails, the exit status is not 1 or 2, which mean findings.
func TestVetThatSeesNothing(t *testing.T) {
	const refused = "error: can't reach the API server " + nowhere + " (dial tcp 127.0.0.1:1: connect: connection refused): check --server, " +
		"--context and the kubeconfig\n"
	for name, line := range map[string]string{
		"compare": "kubectl-warren vet -o json -s " + nowhere,
		"write":   "kubectl-warren vet --write -s " + nowhere,
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(answer{3, "", refused}, run(t, strings.Fields(line)...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
