//go:build linux

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupRoot     = "/sys/fs/cgroup"
	subtreeControl = "cgroup.subtree_control"
)

// kubeletControllers are the controllers that the kubelet asks for, where the kernel has them.
var kubeletControllers = []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}

// cgroups is a group of the same name in each hierarchy. Cgroup v2 has one hierarchy, v1 about ten.
type cgroups struct {
	name    string
	enabled []string // v2: the controllers that we switched on at the root
}

func isV2() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

func hierarchies() []string {
	if isV2() {
		return []string{cgroupRoot}
	}
	var dirs []string
	procs, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	for _, file := range procs {
		dir, err := filepath.EvalSymlinks(filepath.Dir(file)) // cpu and cpuacct may be two names of one hierarchy
		if err == nil && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (c *cgroups) make() error {
	found := hierarchies()
	if len(found) == 0 {
		return fmt.Errorf("no cgroup file system is mounted at %s", cgroupRoot)
	}
	for _, h := range found {
		dir := filepath.Join(h, c.name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if err := inheritCPUSet(h, dir); err != nil {
			return err
		}
	}
	if isV2() {
		return c.handDown()
	}
	return nil
}

// inheritCPUSet gives a new group of v1 the processors of its parent: a new group has none, and no process could join it.
func inheritCPUSet(parent, dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if isV2() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("handing processors down to a cgroup: %w", err)
		}
	}
	return nil
}

// handDown switches the controllers of v2 on, at the root and in our group, and remembers those that were off at the root.
func (c *cgroups) handDown() error {
	has, err := controllers(cgroupRoot, "cgroup.controllers")
	if err != nil {
		return err
	}
	on, err := controllers(cgroupRoot, subtreeControl)
	if err != nil {
		return err
	}
	for _, name := range kubeletControllers {
		if !slices.Contains(has, name) {
			continue
		}
		if !slices.Contains(on, name) {
			if err := control(cgroupRoot, "+"+name); err != nil {
				return err
			}
			c.enabled = append(c.enabled, name)
		}
		if err := control(filepath.Join(cgroupRoot, c.name), "+"+name); err != nil {
			return err
		}
	}
	return nil
}

func controllers(dir, file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("reading the controllers of a cgroup: %w", err)
	}
	return strings.Fields(string(text)), nil
}

func control(dir, change string) error {
	if err := os.WriteFile(filepath.Join(dir, subtreeControl), []byte(change), 0o644); err != nil {
		return fmt.Errorf("switching a controller of cgroup %s (%s): %w", dir, change, err)
	}
	return nil
}

// remove takes the groups away as soon as they are free: the kernel needs a moment after the last process.
func (c *cgroups) remove() error {
	var problems []error
	for _, h := range hierarchies() {
		problems = append(problems, removeTree(filepath.Join(h, c.name)))
	}
	for _, name := range c.enabled {
		problems = append(problems, control(cgroupRoot, "-"+name))
	}
	c.enabled = nil
	return errors.Join(problems...)
}

func removeTree(dir string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var dirs []string
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		if len(dirs) == 0 {
			return nil
		}
		var last error
		for _, d := range slices.Backward(dirs) { // the deepest first
			if err := syscall.Rmdir(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
				last = fmt.Errorf("removing cgroup %s: %w", d, err)
			}
		}
		if last != nil && time.Now().After(deadline) {
			return last
		}
	}
}
