package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
)

// buildMissing copies the missing binaries from elsewhere on this machine, or else builds them, under a lock: a second builder waits, and
// then finds all of them.
func buildMissing(ctx context.Context, version, dir string, components []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lockCache(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	missing := cache.Missing(dir, components)
	if len(missing) == 0 {
		return nil
	}
	// scratch is in the folder itself, so that the next builder finds and removes the files of a killed builder, and so that a finished
	// binary can be put in place by a rename.
	scratch := filepath.Join(dir, ".building")
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o755)); err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if missing = copyReady(ctx, os.Stderr, scratch, version, dir, missing); len(missing) == 0 {
		return nil
	}
	if err := checkPrerequisites(ctx, dir); err != nil {
		return err
	}
	line := newProgress(os.Stderr, len(missing))
	for _, name := range missing {
		if err := buildOne(ctx, scratch, version, dir, name, line); err != nil {
			return err
		}
	}
	line.finish(fmt.Sprintf("control plane %s is built", version))
	return nil
}

func lockCache(ctx context.Context, file string) (func(), error) {
	l := flock.New(file)
	locked, err := l.TryLock()
	if err == nil && !locked {
		fmt.Fprintln(os.Stderr, "another build of this control plane is under way: waiting for it")
		_, err = l.TryLockContext(ctx, time.Second)
	}
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted while another build was under way")
	case err != nil:
		return nil, fmt.Errorf("locking %s: %w", file, err)
	}
	return func() { _ = l.Unlock() }, nil
}

// buildOne builds one binary, and puts it in place by rename, so that nobody ever starts half a file. An interrupted
// build keeps the binaries that were finished.
func buildOne(ctx context.Context, scratch, version, dir, name string, line *progress) error {
	line.start(name)
	module, pkg, flags, err := prepareModule(ctx, scratch, version, name)
	if err != nil {
		return line.fail(name, err)
	}
	line.expect(countPackages(ctx, module, pkg, flags, line))
	out := filepath.Join(scratch, name)
	if err := goRun(ctx, module, line, "build", "-v", "-trimpath", "-ldflags", flags, "-o", out, pkg); err != nil {
		return line.fail(name, err)
	}
	if err := os.Rename(out, filepath.Join(dir, name)); err != nil {
		return line.fail(name, err)
	}
	line.done()
	return nil
}

// prepareModule returns the folder of a module that can build the component, the package to build and the linker's flags.
func prepareModule(ctx context.Context, scratch, version, name string) (module, pkg, flags string, err error) {
	if name == "etcd" {
		module, err = etcdModule(scratch)
		return module, ".", "-s -w", err
	}
	module, err = kubernetesModule(ctx, scratch, version)
	return module, "k8s.io/kubernetes/cmd/" + name, cache.LDFlags(version), err
}

// countPackages returns how many packages Go's cache lacks for a program, or 0 if the go command doesn't say. The flags are those of the
// build, because the cache is asked for what they make.
func countPackages(ctx context.Context, module, pkg, flags string, line *progress) int {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-trimpath", "-ldflags", flags, "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", pkg)
	cmd.Dir = module
	cmd.Env = goEnv()
	cmd.Stderr = line // names what is downloaded
	out, err := cmd.Output()
	if err != nil {
		return 0 // the build gives the reason
	}
	return len(bytes.Fields(out))
}

// goRun runs the go command in the folder of a module. Its output is shown as progress, and the last lines of it are in the error.
func goRun(ctx context.Context, module string, line *progress, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = goEnv()
	cmd.Stdout, cmd.Stderr = line, line
	// An interrupted compiler finishes writing its caches; a killed one may not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; what was compiled is kept for the next time")
		}
		return fmt.Errorf("go %s: %w\n%s", args[0], err, line.lastLines())
	}
	return nil
}

// goEnv returns the user's environment without the variables that would change the binaries. It lets the go command complete a go.mod.
func goEnv() []string {
	env := make([]string, 0, len(os.Environ())+3)
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "GOFLAGS", "GOWORK", "GOOS", "GOARCH", "GO111MODULE":
		default:
			env = append(env, kv)
		}
	}
	return append(env, "GOFLAGS=-mod=mod", "GOWORK=off")
}
