package main

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// oldestGo is the Go version that the newest of the Kubernetes versions needs.
	oldestGo = "go1.26"
	// The free disk space, in bytes, that a first build needs: in each of Go's caches, and in each folder of the linker and the binaries.
	roomForCaches  = 6 << 30
	roomForResults = 2 << 30
)

// checkPrerequisites returns an error for problems that the build would otherwise meet only after minutes of compiling.
func checkPrerequisites(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the go command is not in the PATH: the control plane is built from source, install %s or newer",
			strings.Replace(oldestGo, "go", "Go ", 1))
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOCACHE", "GOMODCACHE")
	cmd.Env = goEnv()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("asking the go command for its settings: %w", err)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != 3 {
		return fmt.Errorf("the go command answered %q where its version and two folders were expected", out)
	}
	if err := newEnough(answers[0]); err != nil {
		return err
	}
	return errors.Join(
		roomIn(answers[1], roomForCaches, "GOCACHE"), roomIn(answers[2], roomForCaches, "GOMODCACHE"),
		roomIn(dir, roomForResults, "XDG_CACHE_HOME"), roomIn(os.TempDir(), roomForResults, "TMPDIR"))
}

func newEnough(goVersion string) error {
	// "go1.26.1 X:experiment" and "devel go1.27-abc" are real answers too.
	for word := range strings.FieldsSeq(goVersion) {
		word, _, _ = strings.Cut(word, "-")
		if version.IsValid(word) && version.Compare(word, oldestGo) < 0 {
			return fmt.Errorf("%s is too old: the control plane needs %s or newer, install it", word, oldestGo)
		}
	}
	return nil
}

// roomIn returns an error if the folder's file system has less than needed bytes free. The error names the environment variable
// that selects another folder.
func roomIn(folder string, needed uint64, variable string) error {
	free, err := freeBytes(folder)
	if err != nil {
		return fmt.Errorf("looking for free disk space in %s: %w", folder, err)
	}
	if free < needed {
		return fmt.Errorf("%s has %.1f GiB of free disk space: the build of the control plane needs %d GiB, free some or set %s to another disk",
			folder, float64(free)/(1<<30), needed>>30, variable)
	}
	return nil
}

// freeBytes returns how many bytes an unprivileged user may still write on the file system of a folder, which may not exist yet.
func freeBytes(folder string) (uint64, error) {
	var stat unix.Statfs_t
	for {
		err := unix.Statfs(folder, &stat)
		if err == nil {
			return stat.Bavail * uint64(stat.Bsize), nil
		}
		parent := filepath.Dir(folder)
		if !errors.Is(err, unix.ENOENT) || parent == folder {
			return 0, err
		}
		folder = parent
	}
}
