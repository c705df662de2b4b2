package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// audit is the audit policy: it records all requests but health checks, of which there are too many.
const audit = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: [/readyz*, /livez*, /healthz*]
- level: Metadata
`

func (cp *ControlPlane) file(name string) string { return filepath.Join(cp.Dir, name) }

// frugal lets Go collect garbage less often. This halves the CPU time of a start, and of much that follows, and takes 120 MB more memory
// for an API server. The memory limit makes it collect large heaps more often again. And each process runs on one core at a time: many of
// them share few cores, and threads that wake and look for work take a quarter of the CPU time.
var frugal = []string{"GOGC=400", "GOMEMLIMIT=1GiB", "GOMAXPROCS=1"}

func (cp *ControlPlane) newProcess(name string, args []string) *process.Process {
	env := frugal
	if cp.options.DefaultGarbage {
		env = nil
	}
	return process.New(filepath.Join(cp.bin, name), args, env, cp.LogFile(name))
}

func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	if cp.options.Data != "" {
		if err := cp.fillEtcd(cp.options.Data); err != nil {
			return err
		}
	}
	return process.OnFreePort(func(port int) (*process.Process, error) {
		address := "http://127.0.0.1:" + strconv.Itoa(port)
		cp.Etcd = cp.newProcess("etcd", []string{
			"--data-dir", cp.file("etcd"),
			"--listen-client-urls", address, "--advertise-client-urls", address,
			// A single member has no peers, so any port will do.
			"--listen-peer-urls", "http://127.0.0.1:0",
			// A single member elects itself after one election timeout; the default is a second.
			"--heartbeat-interval", "50", "--election-timeout", "500",
			"--unsafe-no-fsync", "--log-level", "error", "--quota-backend-bytes", "8589934592",
		})
		cp.etcdURL = address
		return cp.Etcd, cp.Etcd.StartReady(ctx, process.HTTPOK(nil, address+"/readyz"))
	})
}

func (cp *ControlPlane) startAPIServer(ctx context.Context) error {
	return process.OnFreePort(func(port int) (*process.Process, error) {
		cp.port = port
		if err := cp.users.writeKubeconfigs(cp.Access, "https://127.0.0.1:"+strconv.Itoa(port)); err != nil {
			return nil, err
		}
		return cp.APIServer, cp.startAPIServerOnPort(ctx)
	})
}

// UpgradeAPIServer replaces the API server, which emulated an older version, by one that emulates none.
func (cp *ControlPlane) UpgradeAPIServer(ctx context.Context) error {
	if err := cp.APIServer.Stop(); err != nil {
		return err
	}
	cp.options.EmulatedVersion = ""
	return cp.startAPIServerOnPort(ctx)
}

// AddAPIServer starts one more API server on the same etcd, and returns its address. Its requests are not in the audit log.
func (cp *ControlPlane) AddAPIServer(ctx context.Context) (address string, err error) {
	err = process.OnFreePort(func(port int) (*process.Process, error) {
		address = "https://127.0.0.1:" + strconv.Itoa(port)
		args, err := cp.apiServerArgs(port, false)
		if err != nil {
			return nil, err
		}
		serves, err := cp.checkServer(address)
		if err != nil {
			return nil, err
		}
		server := cp.newProcess("kube-apiserver", args)
		cp.more = append(cp.more, server)
		return server, server.StartReady(ctx, serves)
	})
	return address, err
}

func (cp *ControlPlane) startAPIServerOnPort(ctx context.Context) error {
	args, err := cp.apiServerArgs(cp.port, cp.options.Audit)
	if err != nil {
		return err
	}
	cp.APIServer = cp.newProcess("kube-apiserver", args)
	serves, err := cp.checkServer("")
	if err != nil {
		return err
	}
	return cp.APIServer.StartReady(ctx, serves)
}

func (cp *ControlPlane) apiServerArgs(port int, audited bool) ([]string, error) {
	args := []string{
		"--etcd-servers", cp.etcdURL,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port),
		// Without this flag, the API server looks for a default route, and doesn't start on a machine without one.
		"--advertise-address", "127.0.0.1", "--external-hostname", "localhost",
		"--tls-cert-file", cp.users.path("apiserver.crt"), "--tls-private-key-file", cp.users.path("apiserver.key"),
		"--cert-dir", cp.file("certs"),
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", cp.users.path("sa.key"),
		"--service-account-signing-key-file", cp.users.path("sa.key"),
		"--token-auth-file", cp.users.path("tokens.csv"), "--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.96.0.0/16", "--allow-privileged",
		// The API server refuses a loopback address as the endpoint of Service kubernetes, which no component here needs.
		"--endpoint-reconciler-type", "none",
	}
	if v := cp.options.EmulatedVersion; v != "" {
		args = append(args, "--emulated-version", v)
	}
	if audited {
		policy := cp.file("audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(audit), 0o600); err != nil {
			return nil, fmt.Errorf("writing the audit policy: %w", err)
		}
		args = append(args, "--audit-policy-file", policy, "--audit-log-path", cp.AuditLog(),
			// Mode blocking: each answered request is in the log at once. The log is never rotated, because readers keep their
			// place by offset.
			"--audit-log-mode", "blocking", "--audit-log-maxsize", "100000")
	}
	return append(args, cp.options.APIServerArgs...), nil
}

func (cp *ControlPlane) startControllers(ctx context.Context) error {
	kubeconfig := cp.Kubeconfig(controllerManager)
	cp.Controllers = cp.newProcess("kube-controller-manager", append([]string{
		"--kubeconfig", kubeconfig,
		"--service-account-private-key-file", cp.users.path("sa.key"), "--root-ca-file", cp.users.path("apiserver.crt"),
		"--use-service-account-credentials", "--leader-elect=false",
		"--secure-port", "0", // no component here calls the controller manager
		"--kube-api-qps", "1000", "--kube-api-burst", "2000", "--concurrent-namespace-syncs", "20",
	}, cp.options.ControllerManagerArgs...))
	controls, err := cp.checkControllers()
	if err != nil {
		return err
	}
	return cp.Controllers.StartReady(ctx, controls)
}
