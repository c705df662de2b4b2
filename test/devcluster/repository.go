package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Root returns the folder of the clone: the nearest one above the working directory that has our PROJECT file.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the clone: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is in no clone of warren (no PROJECT file here or above): change into one", start)
		}
	}
}

// BuildManager builds the operator into bin/test and returns its path, in a second where nothing changed: a suite
// never tests a stale binary. With WARREN_RACE=1 it has the race detector.
func BuildManager(ctx context.Context) (string, error) { return buildProgram(ctx, "manager", ".") }

// BuildBilling builds, beside the operator of BuildManager, the programs of billing that the operator hands over to.
func BuildBilling(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := buildProgram(ctx, name, "./cmd/"+name); err != nil {
			return err
		}
	}
	return nil
}

// BuildPlugin builds kubectl-warren beside them, as the image has it.
func BuildPlugin(ctx context.Context) error {
	_, err := buildProgram(ctx, "kubectl-warren", "./cmd/kubectl-warren")
	return err
}

// Helm returns the path of Helm's program. The Go tool builds it from hack/helm, and keeps it in its cache.
func Helm(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path, err := exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join(root, "hack", "helm", "go.mod"), "-n", "helm").Output()
	if err != nil {
		return "", fmt.Errorf("building Helm: %w", err)
	}
	return string(bytes.TrimSpace(path)), nil
}

func buildProgram(ctx context.Context, name, source string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	// As `make build` does it, so that both share Go's cache.
	folder, env, flags := "test", "CGO_ENABLED=0", "-trimpath"
	if os.Getenv("WARREN_RACE") == "1" {
		folder, env, flags = "test-race", "CGO_ENABLED=1", "-race"
	}
	dir := filepath.Join(root, "bin", folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	lock := flock.New(filepath.Join(dir, ".lock")) // suites of several packages may run at once
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	defer func() { _ = lock.Unlock() }()
	out := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", flags, "-o", out, source)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env)
	if answer, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, bytes.TrimSpace(answer))
	}
	return out, nil
}
