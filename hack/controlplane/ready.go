package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
)

// assetsEnv names the folder of etcd, kube-apiserver and kubectl that envtest of controller-runtime uses.
const assetsEnv = "KUBEBUILDER_ASSETS"

// copyReady copies into dir the components that are on this machine already in the version that would be built, and returns the others.
// It prints which binaries it uses, and which not because they are of another version. Without any that fit, all are built.
func copyReady(ctx context.Context, out io.Writer, scratch, version, dir string, missing []string) []string {
	for _, name := range missing {
		for _, path := range findReady(name) {
			if err := copyIfVersion(ctx, path, filepath.Join(scratch, name), filepath.Join(dir, name), wantedVersion(name, version)); err != nil {
				_, _ = fmt.Fprintf(out, "not using %s: %v\n", path, err)
				continue
			}
			_, _ = fmt.Fprintf(out, "using %s: it is of version %s\n", path, wantedVersion(name, version))
			break
		}
	}
	return cache.Missing(dir, missing)
}

// findReady returns the executable files of a name in the folder of assetsEnv and in the PATH, in this order.
func findReady(name string) []string {
	var found []string
	if assets := os.Getenv(assetsEnv); assets != "" && len(cache.Missing(assets, []string{name})) == 0 {
		found = append(found, filepath.Join(assets, name))
	}
	if path, err := exec.LookPath(name); err == nil && (len(found) == 0 || found[0] != path) {
		found = append(found, path)
	}
	return found
}

// wantedVersion returns the version of a component of a control plane, without the letter v.
func wantedVersion(name, version string) string {
	if name == "etcd" {
		return strings.TrimPrefix(cache.EtcdVersion, "v")
	}
	return version
}

// copyIfVersion copies a program to scratch, and renames the copy to target if it prints the version. It copies, because the PATH may have
// another version tomorrow. It asks the copy, because a link to a launcher, as those of snap, does not work under another path.
func copyIfVersion(ctx context.Context, path, scratch, target, version string) error {
	if err := copyProgram(path, scratch); err != nil {
		return err
	}
	defer func() { _ = os.Remove(scratch) }() // there is none after the rename
	found, err := askVersion(ctx, scratch)
	if err != nil {
		return err
	}
	if found != version {
		return fmt.Errorf("it is of version %s, and %s is needed", found, version)
	}
	return os.Rename(scratch, target)
}

func copyProgram(path, target string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// printedVersion is the first version in "Kubernetes v1.36.3", "Client Version: v1.36.3" or "etcd Version: 3.6.16". What a distribution
// appends, such as -eks-1 or +k3s1, belongs to it.
var printedVersion = regexp.MustCompile(`(?i)(?:kubernetes|version:?) v?([0-9]+\.[0-9]+\.[0-9]+\S*)`)

// askVersion runs a program for at most 30 seconds, and returns the version that it prints.
func askVersion(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	args := []string{"--version"}
	if filepath.Base(program) == "kubectl" {
		args = []string{"version", "--client"}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking it for its version: %w", err)
	}
	match := printedVersion.FindSubmatch(out)
	if match == nil {
		return "", errors.New("it prints no version")
	}
	return string(match[1]), nil
}
