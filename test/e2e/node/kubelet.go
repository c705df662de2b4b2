//go:build linux

package node

import (
	"fmt"
	"path/filepath"
)

// kubeletConfiguration lets the kubelet work on a machine that isn't its own: in one cgroup, without changing the OOM scores of processes,
// and without ever evicting a pod or an image, for no image here could be pulled again.
func (n *Node) kubeletConfiguration() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication:
  x509: {clientCAFile: %q}
cgroupDriver: cgroupfs
cgroupRoot: %q
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
localStorageCapacityIsolation: false
oomScoreAdj: 0
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: "0%%"
  nodefs.available: "0%%"
  nodefs.inodesFree: "0%%"
  imagefs.available: "0%%"
  imagefs.inodesFree: "0%%"
resolvConf: ""
volumePluginDir: /var/lib/kubelet/volumeplugins
`, n.certificates.path("ca.crt"), "/"+filepath.Base(n.dir))
}
