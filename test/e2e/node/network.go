//go:build linux

package node

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Addresses of the node. They exist only in its network namespace, so that several nodes can run side by side.
const (
	address       = "10.99.0.1"
	pods          = "10.244.0.0/24"
	services      = "10.96.0.0/16" // as package controlplane has it
	apiService    = "10.96.0.1"    // its first address, which is that of Service kubernetes
	nodeInterface = "node0"
)

// connectInterface makes the node's interface. There is no default route: a connection to the outside fails soon instead of hanging.
func connectInterface(ctx context.Context) error {
	for _, line := range []string{
		"link set lo up",
		// A bridge without ports is an interface that needs nothing else.
		"link add " + nodeInterface + " type bridge",
		"addr add " + address + "/24 dev " + nodeInterface,
		"link set " + nodeInterface + " up",
		// Without any route the kernel refuses a packet to a Service before kube-proxy's rules see it.
		"route add " + services + " dev " + nodeInterface + " src " + address,
	} {
		if answer, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("making the node's network (ip %s): %w: %s", line, err, strings.TrimSpace(string(answer)))
		}
	}
	return nil
}
