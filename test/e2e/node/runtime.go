//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// PauseImage is the image of the container that holds a pod's namespaces; Start gets it as a file.
const PauseImage = "localhost/pause:1"

// snapshotter copies whole layers: slower than overlayfs, but it works on every file system, and images are small here.
const snapshotter = "native"

// startRuntime starts containerd. Its plugin `opt` would make /opt/containerd on the machine; without
// restrict_oom_score_adj every pod fails on machines that don't let root lower that score.
func (n *Node) startRuntime(ctx context.Context) error {
	config := n.file("containerd.toml")
	if err := writeFile(config, fmt.Sprintf(`version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true
cni = {bin_dir = %q, conf_dir = %q}
containerd = {snapshotter = %q}
`, PauseImage, cniPlugins, n.file("cni"), snapshotter)); err != nil {
		return err
	}
	// ptp, not bridge: pods are routed, so that a Service works from pod to pod without the module br_netfilter.
	if err := writeFile(filepath.Join(n.file("cni"), "pods.conflist"), fmt.Sprintf(`{
  "cniVersion": "0.4.0", "name": "pods",
  "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": %q, "routes": [{"dst": "0.0.0.0/0"}]}}]
}
`, pods)); err != nil {
		return err
	}
	path, err := exec.LookPath("containerd")
	if err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	p := process.New(path, []string{"--config", config}, nil, n.LogFile("containerd"))
	n.processes = append(n.processes, p)
	return p.StartReady(ctx, func(ctx context.Context) error { return ctr(ctx, "version") })
}

// Import loads the images in a file into containerd, for the kubelet.
func (n *Node) Import(ctx context.Context, file string) error {
	if err := ctr(ctx, "--namespace=k8s.io", "images", "import", "--snapshotter="+snapshotter, file); err != nil {
		return fmt.Errorf("importing the image %s: %w", file, err)
	}
	return nil
}

func ctr(ctx context.Context, args ...string) error {
	answer, err := exec.CommandContext(ctx, "ctr", args...).CombinedOutput()
	if err != nil {
		return errors.New(strings.TrimSpace(string(answer)) + " (" + err.Error() + ")")
	}
	return nil
}
