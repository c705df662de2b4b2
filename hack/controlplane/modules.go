package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
)

// etcdModule writes a module whose main package runs etcd: etcd's own main package is in a module full of replace
// directives, which can't be built from outside.
func etcdModule(scratch string) (string, error) {
	dir := filepath.Join(scratch, "module-etcd")
	mod := "module etcd\n\ngo 1.24\n\nrequire go.etcd.io/etcd/server/v3 " + cache.EtcdVersion + "\n"
	main := `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`
	return dir, writeModule(dir, map[string]string{"go.mod": mod, "main.go": main})
}

// kubernetesModule writes a module that requires k8s.io/kubernetes and replaces each staging module, which is a folder
// in that repository, by the published module of the same release.
func kubernetesModule(ctx context.Context, scratch, version string) (string, error) {
	dir := filepath.Join(scratch, "module-kubernetes")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return dir, nil
	}
	theirs, err := downloadGoMod(ctx, scratch, "k8s.io/kubernetes@v"+version)
	if err != nil {
		return "", err
	}
	mod, err := scratchGoMod(theirs, version)
	if err != nil {
		return "", err
	}
	return dir, writeModule(dir, map[string]string{"go.mod": mod})
}

// scratchGoMod returns the go.mod of the module that kubernetesModule writes. It keeps the go and godebug lines of Kubernetes: they decide
// the binaries' defaults.
func scratchGoMod(theirs []byte, version string) (string, error) {
	theirMod, err := modfile.Parse("go.mod", theirs, nil)
	if err != nil {
		return "", fmt.Errorf("reading the go.mod of Kubernetes %s: %w", version, err)
	}
	if theirMod.Go == nil {
		return "", fmt.Errorf("the go.mod of Kubernetes %s has no go line", version)
	}
	var mod strings.Builder
	fmt.Fprintf(&mod, "module controlplane\n\ngo %s\n\n", theirMod.Go.Version)
	for _, g := range theirMod.Godebug {
		fmt.Fprintf(&mod, "godebug %s=%s\n", g.Key, g.Value)
	}
	fmt.Fprintf(&mod, "\nrequire k8s.io/kubernetes v%s\n\n", version)
	_, minor, _ := strings.Cut(version, ".")
	for _, r := range theirMod.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			fmt.Fprintf(&mod, "replace %s => %s v0.%s\n", r.Old.Path, r.Old.Path, minor)
		}
	}
	return mod.String(), nil
}

func downloadGoMod(ctx context.Context, scratch, module string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = scratch
	cmd.Env = goEnv()
	out, err := cmd.Output()
	var answer struct{ GoMod, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr == nil && answer.Error != "" {
		return nil, fmt.Errorf("downloading %s: %s", module, answer.Error)
	}
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("downloading %s: %w", module, err)
	}
	return os.ReadFile(answer.GoMod)
}

func writeModule(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
