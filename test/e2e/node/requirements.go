//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cniPlugins is the folder where Debian installs CNI plugins.
const cniPlugins = "/usr/lib/cni"

// programs that the node needs, and the Debian packages that have them.
var programs = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{filepath.Join(cniPlugins, "ptp"), "containernetworking-plugins"},
	{filepath.Join(cniPlugins, "host-local"), "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"mount", "util-linux"}, // the kubelet calls it
}

// covered are the folders that the node has of its own: files in those of the machine can't be seen from inside.
var covered = []string{"/run", "/var/lib", "/var/log", "/proc"}

// Missing returns an error that says what this machine lacks, nil if a node can run here. The files must be visible from inside.
func Missing(files ...string) error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root: run it as root, or with sudo")
	}
	var packages []string
	for _, p := range programs {
		if _, err := exec.LookPath(p.program); err != nil {
			packages = append(packages, p.pkg)
		}
	}
	if len(packages) > 0 {
		slices.Sort(packages)
		return fmt.Errorf("a node needs programs that are not here: install the Debian packages %s",
			strings.Join(slices.Compact(packages), " "))
	}
	for _, file := range files {
		if dir := coveredBy(file); dir != "" {
			return fmt.Errorf("%s can't be seen from a node, which has its own %s: move it elsewhere", file, dir)
		}
	}
	return checkAllowed()
}

// checkAllowed tries to make namespaces and cgroups, which root may not do in most containers.
func checkAllowed() error {
	probe := exec.Command("/proc/self/exe", "-no-such-mode")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	err := probe.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // it ran, which is all that was asked
		return fmt.Errorf("a node needs namespaces of its own, and the kernel refuses them (%w): run it on a machine or in a privileged "+
			"container", err)
	}
	c := cgroups{name: fmt.Sprintf("%s%d-probe", prefix, os.Getpid())}
	if err := errors.Join(c.make(), c.remove()); err != nil {
		return fmt.Errorf("a node needs cgroups of its own: %w; run it on a machine or in a privileged container", err)
	}
	return nil
}

func coveredBy(file string) string {
	resolved, err := filepath.EvalSymlinks(file)
	if err != nil {
		resolved = file
	}
	for _, dir := range covered {
		if strings.HasPrefix(resolved+"/", dir+"/") {
			return dir
		}
	}
	return ""
}
