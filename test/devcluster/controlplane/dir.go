package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const dirPrefix = "warren-controlplane-"

// makeDir makes the folder of one control plane and takes its lock. The lock ends with the process, even by SIGKILL, so that the
// next start finds temporary folders that no process uses any more, and removes them.
func makeDir(dir string) (string, *flock.Flock, error) {
	var err error
	if dir == "" {
		removeAbandoned()
		dir, err = os.MkdirTemp("", dirPrefix)
	} else if err = os.MkdirAll(dir, 0o700); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("making the control plane's folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return "", nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	if !locked {
		return "", nil, fmt.Errorf("%s is the folder of a running control plane: stop that one or take another folder", dir)
	}
	return dir, lock, nil
}

// removeAbandoned removes the folders of killed programs. It ignores errors, because a folder that can't be removed is another user's.
func removeAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		file := filepath.Join(dir, "lock")
		if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) < time.Minute {
			continue // another program's folder, or one that is being made at this moment
		}
		lock := flock.New(file)
		if locked, err := lock.TryLock(); err == nil && locked {
			_ = os.RemoveAll(dir)
			_ = lock.Unlock()
		}
	}
}
