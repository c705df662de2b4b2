//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// Name of the node, and the users as which its components log in.
const (
	Name      = "node"
	kubelet   = "system:node:" + Name
	scheduler = "system:kube-scheduler"
	proxy     = "system:kube-proxy"
)

// Node is a running node with its control plane. Nothing stops it but the end of the enclosure.
type Node struct {
	ControlPlane *controlplane.ControlPlane

	dir, bin     string
	certificates certificates
	processes    []*process.Process
}

// Dir returns the enclosure's folder, in the inner process.
func Dir() string { return os.Getenv(dirEnv) }

// Start starts a node in the enclosure that this process runs in, and returns when pods can run on it. pauseImage is the path of a file
// with PauseImage.
func Start(ctx context.Context, pauseImage string) (*Node, error) {
	bin, err := cache.Dir(cache.DefaultVersion)
	if err != nil {
		return nil, err
	}
	if missing := cache.Missing(bin, cache.NodeComponents()); len(missing) > 0 {
		return nil, fmt.Errorf("%v are not built: go run ./hack/controlplane -components kube-scheduler,kubelet,kube-proxy", missing)
	}
	dir := Dir()
	n := &Node{dir: dir, bin: bin, certificates: certificates{dir: filepath.Join(dir, "certificates")}}
	if err := errors.Join(connectInterface(ctx), n.certificates.write()); err != nil {
		return nil, err
	}
	runtime := make(chan error, 1)
	go func() {
		err := n.startRuntime(ctx)
		if err == nil {
			err = n.Import(ctx, pauseImage)
		}
		runtime <- err
	}()
	err = n.startControlPlane(ctx)
	if err := errors.Join(err, <-runtime); err != nil {
		return nil, err
	}
	return n, n.startComponents(ctx)
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// LogFile of a component of the node; those of the control plane are in ControlPlane.Dir.
func (n *Node) LogFile(component string) string { return n.file(component + ".log") }

// startControlPlane starts the usual control plane, but on the node's address, too, and with what a kubelet needs.
func (n *Node) startControlPlane(ctx context.Context) error {
	c := n.certificates
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Dir: n.file("controlplane"),
		Users: map[string][]string{
			kubelet: {"system:nodes"}, scheduler: nil, proxy: nil,
		},
		APIServerArgs: []string{
			"--bind-address", "0.0.0.0", "--advertise-address", address, "--endpoint-reconciler-type", "lease",
			// Clients that use the node's address, as pods do, get this certificate; on loopback they get the usual one.
			"--tls-sni-cert-key", c.path("serving.crt") + "," + c.path("serving.key") + ":" + address,
			"--client-ca-file", c.path("ca.crt"),
			"--kubelet-client-certificate", c.path("kubelet-client.crt"), "--kubelet-client-key", c.path("kubelet-client.key"),
			"--kubelet-preferred-address-types", "InternalIP",
			"--authorization-mode", "Node", "--enable-admission-plugins", "NodeRestriction",
		},
		ControllerManagerArgs: []string{"--root-ca-file", c.path("ca.crt")},
	})
	n.ControlPlane = cp
	return err
}

// startComponents starts kube-proxy last: without the Node object, which the kubelet makes, it waits for half a minute.
func (n *Node) startComponents(ctx context.Context) error {
	access := n.ControlPlane.Access
	schedulerConfig := access.Kubeconfig(scheduler)
	if err := writeFile(n.file("kubelet.yaml"), n.kubeletConfiguration()); err != nil {
		return err
	}
	nodeReady, err := n.checkReady()
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name  string
		ready func(context.Context) error
		args  []string
	}{
		{"kube-scheduler", func(context.Context) error { return nil }, []string{
			"--kubeconfig", schedulerConfig, "--authentication-kubeconfig", schedulerConfig,
			"--authorization-kubeconfig", schedulerConfig, "--leader-elect=false", "--bind-address", "127.0.0.1",
		}},
		{"kubelet", nodeReady, []string{
			"--config", n.file("kubelet.yaml"), "--kubeconfig", access.Kubeconfig(kubelet),
			"--hostname-override", Name, "--node-ip", address,
		}},
		{"kube-proxy", process.HTTPOK(nil, "http://127.0.0.1:10256/livez"), []string{
			"--kubeconfig", access.Kubeconfig(proxy), "--proxy-mode", "iptables", "--cluster-cidr", pods,
			"--hostname-override", Name, "--healthz-bind-address", "127.0.0.1:10256",
			// The limit of connections is the whole machine's, so kube-proxy must not change it.
			"--conntrack-max-per-core", "0", "--conntrack-min", "0", "--oom-score-adj", "0",
		}},
	} {
		p := process.New(filepath.Join(n.bin, c.name), c.args, nil, n.LogFile(c.name))
		n.processes = append(n.processes, p)
		if err := p.StartReady(ctx, c.ready); err != nil {
			return err
		}
	}
	return nil
}

// checkReady returns a check that the node is Ready and has no taints. The controller manager removes the taints that keep pods off when it
// has seen that the node is Ready.
func (n *Node) checkReady() (func(context.Context) error, error) {
	c, err := kubernetes.NewForConfig(n.ControlPlane.Config(controlplane.Admin))
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return func(ctx context.Context) error {
		node, err := c.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node has taints: %v", node.Spec.Taints)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the node is not Ready")
	}, nil
}

// Running returns an error that names a component that has ended, nil if none has.
func (n *Node) Running() error {
	for _, p := range n.processes {
		if !p.Running() {
			return fmt.Errorf("%s ended with exit code %d; the end of its log:\n%s", p.Name, p.ExitCode(), p.LogTail(10))
		}
	}
	return nil
}
