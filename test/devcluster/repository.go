package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

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

// BuildManager builds the operator into bin/test and returns its path. If nothing has changed, this takes a second, so a suite never tests
// a stale binary. With WARREN_RACE=1 the operator has the race detector and is in bin/test-race.
func BuildManager(ctx context.Context) (string, error) { return buildProgram(ctx, "manager", ".") }

// BuildManagerWith builds the operator into bin/test under that name, with another text in some source files, as `go build -overlay` does,
// and returns its path. The files themselves stay as they are. The keys of texts are paths: of the clone, unless they are absolute.
func BuildManagerWith(ctx context.Context, name string, texts map[string]string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "warren-overlay-")
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for path, text := range texts {
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		other := filepath.Join(dir, fmt.Sprint(len(overlay.Replace), filepath.Base(path)))
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("building %s: %w", name, err)
		}
		overlay.Replace[path] = other
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return buildProgram(ctx, name, ".", "-overlay="+filepath.Join(dir, "overlay.json"))
}

// BuildBilling builds, beside the operator of BuildManager, the programs of billing that the operator hands over to.
func BuildBilling(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := buildProgram(ctx, name, "./cmd/"+name); err != nil {
			return err
		}
	}
	return nil
}

// BuildPlugins builds our kubectl plugins into bin/test, as BuildManager does, under each name that kubectl calls them by, and returns that
// folder.
func BuildPlugins(ctx context.Context) (string, error) {
	dir := ""
	for name, otherNames := range map[string][]string{
		"kubectl-warren": {"kubectl-create-lns"}, "kubectl-sudo": {"kubectl_complete-sudo"},
	} {
		path, err := build(ctx, "test", name, "./cmd/"+name, nil, otherNames...)
		if err != nil {
			return "", err
		}
		dir = filepath.Dir(path)
	}
	return dir, nil
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

func buildProgram(ctx context.Context, name, source string, flags ...string) (string, error) {
	if os.Getenv("WARREN_RACE") == "1" {
		return build(ctx, "test-race", name, source, append(flags, "-race"))
	}
	return build(ctx, "test", name, source, flags)
}

// build builds a program into a folder below bin, under its name and otherNames, and returns its path. But for flags it is built as the
// tests are, so that both share Go's cache.
func build(ctx context.Context, folder, name, source string, flags []string, otherNames ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
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
	// Without debugging information, linking takes a third of the time; stack traces stay whole.
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-ldflags=-s -w", "-o", out}, flags, []string{source})...)
	cmd.Dir = root
	if answer, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, bytes.TrimSpace(answer))
	}
	for _, other := range otherNames {
		link := filepath.Join(dir, other)
		if target, err := os.Readlink(link); err == nil && target == name {
			continue
		}
		if err := os.Symlink(name, link); err != nil {
			return "", fmt.Errorf("naming %s: %w", other, err)
		}
	}
	return out, nil
}
