// Package node starts a real Kubernetes node on a Linux machine without changing that machine: kubelet, containerd,
// kube-proxy, scheduler and a control plane run in a network, mount and process namespace of their own. Two processes
// share the work:
//
//   - the outer one makes an Enclosure, runs a program in it and cleans up;
//   - the inner one, that program, calls Furnish and Start, and whatever it likes after that: its network is the node's.
//
// When the inner one ends, the kernel ends everything in the enclosure, pods included, and forgets its mounts and its
// interfaces, for they have no name outside. What a crash can leave is a folder and empty cgroups: the next Enclosure
// removes them.
package node
