//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/cache"
	"github.com/warren-tenancy/warren/test/e2e/node"
)

// supplies are the files that are made outside, where Go can download modules, and used inside, where it can't.
type supplies struct{ made string }

func (s supplies) pause() string { return filepath.Join(s.made, "pause.tar") }
func (s supplies) demo() string  { return filepath.Join(s.made, "demo") }
func (s supplies) chart() string { return filepath.Join(s.made, "chart") }

// reports is where the logs of a failed run go.
func (s supplies) reports() string { return filepath.Join(".reports", "e2e-node") }

// missingRequirements returns an error that says what this machine lacks, before anything is built.
func missingRequirements(ctx context.Context) error {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	bin, err := cache.Root()
	if err != nil {
		return err
	}
	for _, program := range []string{"go", "make", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not in the PATH: it builds what runs on the node", program)
		}
	}
	folders, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("asking the go command for its folders: %w", err)
	}
	return node.Missing(append(strings.Fields(string(folders)), root, bin, os.TempDir())...)
}

func (s supplies) prepare(ctx context.Context) error {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("changing into the clone: %w", err)
	}
	// If make calls this program, its variables must not reach the makes that this program calls.
	for _, name := range []string{"MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	v, pause := s.current(), filepath.Join(s.made, "pause")
	for _, command := range [][]string{
		{"go", "run", "./hack/controlplane", "-components", strings.Join(cache.NodeComponents(), ",")},
		{"make", "build", "image", "IMG=" + v.image, "IMAGE_TAR=" + s.imageFile(v)},
		{"env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", pause, "./test/e2e/pause"},
		{"go", "run", "./hack/image", "-name", node.PauseImage, "-o", s.pause(), pause},
		{"go", "build", "-o", s.demo(), "./hack/demo"},
		// This builds the tools of `make deploy` while there is a network.
		{"hack/render.sh", overlay, v.image},
		{"go", "run", "./hack/chart", "-o", s.chart(), "-version", "v0.0.0-e2e"},
		{"go", "tool", "-modfile=hack/helm/go.mod", "helm", "version"},
	} {
		if err := prepareBy(ctx, command); err != nil {
			return err
		}
	}
	return s.preparePrevious(ctx)
}

// prepareBy runs a command. What the command writes to stderr, such as how far a build is, is shown. What it writes to stdout is in the
// error if it fails.
func prepareBy(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", strings.Join(command, " "), err), errors.New(strings.TrimSpace(string(answer))))
	}
	return nil
}
