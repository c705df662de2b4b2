// Package controlplane starts and stops a real Kubernetes control plane on loopback: etcd, the API server and the
// controller manager, with plain users that have tokens. Suites, the demo and the playground share it.
//
// The order matters: API server, then whatever Options.BeforeControllers installs (the CRDs), then the controller manager. Its
// garbage collector knows the kinds that exist when it starts, and learns of later kinds up to 41 s late.
//
// No process outlives the program that called Start: see package process. Stop ends all of them in order and removes
// the folder.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
	"github.com/warren-tenancy/warren/test/devcluster/process"
	"github.com/warren-tenancy/warren/test/facts"
)

// Options configure a control plane. The zero value of each field stands for its default.
type Options struct {
	// Version of Kubernetes; empty means cache.Version.
	Version string
	// Dir is the folder of all files. Empty means a new temporary folder. Start creates the folder if it is missing, and Stop removes it.
	Dir string
	// Users are added to People: user name to groups.
	Users map[string][]string
	// APIServerArgs and ControllerManagerArgs are appended to the components' flags.
	APIServerArgs, ControllerManagerArgs []string
	// EmulatedVersion makes the API server behave as an older minor version, such as "1.35".
	EmulatedVersion string
	// Audit makes the API server write AuditLog, at level Metadata.
	Audit bool
	// DefaultGarbage lets the components collect garbage by Go's defaults, as in production, for programs that measure them.
	DefaultGarbage bool
	// WithoutControllers starts no controller manager: no object is deleted because its owner is gone, no ClusterRole is aggregated, and no
	// namespace is emptied.
	WithoutControllers bool
	// Data is a folder that SaveEtcd or StopAndKeep wrote, from which etcd starts; it is copied. Empty means an empty etcd.
	Data string
	// BeforeControllers runs when the API server is ready and before the controller manager starts.
	BeforeControllers func(*ControlPlane) error
}

// ControlPlane is a running control plane. Its processes can be stopped and started one by one, for tests of outages;
// addresses and tokens stay the same.
type ControlPlane struct {
	Access
	// Version of Kubernetes.
	Version string
	// Etcd, APIServer and Controllers are the processes; Controllers is nil with option WithoutControllers.
	Etcd, APIServer, Controllers *process.Process

	more    []*process.Process // API servers that AddAPIServer has started
	options Options
	bin     string
	etcdURL string
	port    int // of the API server
	users   *credentials
	lock    *flock.Flock
	begun   time.Time
}

// Start starts a control plane and returns when it is ready: the API server is ready, the default ServiceAccount is there, and the
// aggregated ClusterRoles have their rules. With WithoutControllers, it waits for the API server alone. When it fails, nothing is left
// behind.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	begun := time.Now()
	cp, err := prepareDir(options)
	if err != nil {
		return nil, err
	}
	if err := cp.startComponents(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	facts.Write(facts.Record{Kind: facts.Plane, Name: filepath.Base(os.Args[0]), CPU: cp.CPU().Seconds(), Wall: time.Since(begun).Seconds()})
	return cp, nil
}

// CPU returns the CPU time of the processes that run now.
func (cp *ControlPlane) CPU() time.Duration {
	return cp.Etcd.CPU() + cp.APIServer.CPU() + cp.Controllers.CPU()
}

func prepareDir(options Options) (*ControlPlane, error) {
	if options.Version == "" {
		options.Version = cache.Version()
	}
	bin, err := findBinaries(options.Version)
	if err != nil {
		return nil, err
	}
	dir, lock, err := makeDir(options.Dir)
	if err != nil {
		return nil, err
	}
	return &ControlPlane{
		Access:  Access{Dir: dir, KubectlPath: filepath.Join(bin, "kubectl")},
		Version: options.Version, options: options, bin: bin, lock: lock, begun: time.Now(),
	}, nil
}

// findBinaries returns the folder of the binaries of a version.
func findBinaries(version string) (string, error) {
	bin, err := cache.Dir(version)
	if err != nil {
		return "", err
	}
	missing := cache.Missing(bin, cache.Components())
	switch {
	case len(missing) == 0:
		return bin, nil
	case os.Getenv(cache.DirEnv) != "":
		return "", fmt.Errorf("%s=%s lacks %s: put them there, or unset it and run: make controlplane",
			cache.DirEnv, bin, strings.Join(missing, ", "))
	case version != cache.Version():
		return "", fmt.Errorf("control plane %s is not built; run: go run ./hack/controlplane -version %s", version, version)
	}
	return "", fmt.Errorf("control plane %s is not built; run: make controlplane", version)
}

func (cp *ControlPlane) startComponents(ctx context.Context) error {
	credentialsReady := make(chan error, 1)
	go func() { // the keys take as long to make as etcd takes to start
		var err error
		cp.users, err = writeCredentials(cp.Dir, allUsers(cp.options.Users))
		credentialsReady <- err
	}()
	etcdErr := cp.startEtcd(ctx)
	if err := errors.Join(<-credentialsReady, etcdErr); err != nil {
		return err
	}
	if err := cp.startAPIServer(ctx); err != nil {
		return err
	}
	if hook := cp.options.BeforeControllers; hook != nil {
		if err := hook(cp); err != nil {
			return fmt.Errorf("preparing the API server before the controllers start: %w", err)
		}
	}
	if cp.options.WithoutControllers {
		return nil
	}
	return cp.startControllers(ctx)
}

// Stop ends all processes, waits for them, and removes the folder. It may be called more than once.
func (cp *ControlPlane) Stop() error {
	return errors.Join(cp.stopProcesses(), os.RemoveAll(cp.Dir), cp.lock.Unlock())
}

// stopProcesses ends all processes, in order, and records what they cost.
func (cp *ControlPlane) stopProcesses() error {
	if used := cp.CPU(); used > 0 {
		facts.Write(facts.Record{Kind: facts.Life, Name: filepath.Base(os.Args[0]), CPU: used.Seconds(), Wall: time.Since(cp.begun).Seconds()})
	}
	var problems []error
	for _, p := range append([]*process.Process{cp.Controllers, cp.APIServer}, append(cp.more, cp.Etcd)...) {
		if p != nil {
			problems = append(problems, p.Stop())
		}
	}
	return errors.Join(problems...)
}
