//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"
)

const (
	prefix     = "warren-e2e-"
	namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET
	// dirEnv is the environment variable with the folder, for the inner process. All processes of a node but its pods have it, and are found
	// by it.
	dirEnv = "WARREN_E2E_DIR"
	// InitMode is the argument with which Enclosure.Run calls this program; its main must then call Init.
	InitMode = "init"
)

// Enclosure is a place for one node: a folder, cgroups, and namespaces while a program runs in it.
type Enclosure struct {
	// Dir holds all files.
	Dir     string
	lock    *flock.Flock
	cgroups cgroups
	before  traces
}

// NewEnclosure makes an enclosure, and removes what crashed ones have left.
func NewEnclosure() (*Enclosure, error) {
	if err := removeAbandoned(); err != nil {
		return nil, err
	}
	before, err := lookAtMachine()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, fmt.Errorf("making the node's folder: %w", err)
	}
	e := &Enclosure{Dir: dir, lock: flock.New(dir + ".lock"), before: before}
	e.cgroups.name = filepath.Base(dir)
	if err := e.lock.Lock(); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the node's folder: %w", err), e.Close())
	}
	return e, nil
}

// removeAbandoned removes folders and cgroups of enclosures whose lock is free: their processes were killed.
func removeAbandoned() error {
	locks, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*.lock"))
	if err != nil {
		return err
	}
	var problems []error
	for _, file := range locks {
		e := Enclosure{Dir: file[:len(file)-len(".lock")], lock: flock.New(file)}
		e.cgroups.name = filepath.Base(e.Dir)
		if locked, err := e.lock.TryLock(); err == nil && locked {
			problems = append(problems, e.remove())
		}
	}
	return errors.Join(problems...)
}

// Run runs this program in the enclosure, with more arguments for Init to pass on, and returns its exit code. When it returns, no process
// of the enclosure is left: the kernel reports the end of its first process only after the end of all others.
func (e *Enclosure) Run(ctx context.Context, args ...string) (int, error) {
	if err := e.cgroups.make(); err != nil {
		return 0, err
	}
	// For the kernel, the process's parent is the thread that starts it. When that thread ends, the kernel kills the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{InitMode}, args...)...)
	cmd.Env = append(os.Environ(), dirEnv+"="+e.Dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: namespaces,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // ctrl-C is for the outer process alone
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("interrupted: %w", context.Cause(ctx)) // the cause names the signal
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("running a program in namespaces of its own: %w", err)
	}
	return 0, nil
}

// Close removes all files and cgroups, and returns an error if anything of the enclosure is left on the machine.
func (e *Enclosure) Close() error {
	if err := e.remove(); err != nil {
		return err
	}
	return e.before.compare(e.Dir)
}

func (e *Enclosure) remove() error {
	return errors.Join(e.cgroups.remove(), os.RemoveAll(e.Dir), os.Remove(e.lock.Path()), e.lock.Unlock())
}
