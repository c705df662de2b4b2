//go:build linux

package node

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// traces are what a node could leave on a machine.
type traces struct {
	interfaces []string
	mounts     []string
	sysctls    map[string]string
}

// wholeMachine are the sysctls that kubelet and kube-proxy would set for the whole machine; others belong to the
// network namespace.
var wholeMachine = append(slices.Collect(maps.Keys(hostSysctls)), "net/netfilter/nf_conntrack_max")

func lookAtMachine() (traces, error) {
	t := traces{sysctls: map[string]string{}}
	all, err := net.Interfaces()
	if err != nil {
		return t, fmt.Errorf("listing network interfaces: %w", err)
	}
	for _, i := range all {
		t.interfaces = append(t.interfaces, i.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return t, fmt.Errorf("listing mounts: %w", err)
	}
	t.mounts = strings.Split(strings.TrimSpace(string(mounts)), "\n")
	for _, name := range wholeMachine {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			t.sysctls[name] = strings.TrimSpace(string(value))
		}
	}
	return t, nil
}

// compare returns an error that lists what a node has left on the machine. Other programs may mount file systems and add interfaces
// meanwhile, so it looks for a node's names.
func (t traces) compare(dir string) error {
	now, err := lookAtMachine()
	if err != nil {
		return err
	}
	left := processesOf(dir)
	if slices.Contains(now.interfaces, nodeInterface) && !slices.Contains(t.interfaces, nodeInterface) {
		left = append(left, "interface "+nodeInterface)
	}
	for _, line := range now.mounts {
		if !slices.Contains(t.mounts, line) && ofNode(line, dir) {
			left = append(left, "mount "+line)
		}
	}
	for name, value := range now.sysctls {
		if was := t.sysctls[name]; was != value {
			left = append(left, fmt.Sprintf("sysctl %s=%s, which was %s", name, value, was))
		}
	}
	for _, h := range hierarchies() {
		left = append(left, existing("cgroup", filepath.Join(h, filepath.Base(dir)))...)
	}
	left = append(left, existing("folder", dir)...)
	if len(left) > 0 {
		return errors.New("the node left something behind: " + strings.Join(left, ", "))
	}
	return nil
}

// ofNode reports whether a line of mountinfo is about a mount that mountOwn makes: its source is in the folder, or it covers a whole folder
// of the machine.
func ofNode(line, dir string) bool {
	fields := strings.Fields(line)
	return strings.Contains(line, filepath.Base(dir)) || len(fields) > 4 && slices.Contains(covered, fields[4])
}

func existing(what, path string) []string {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{what + " " + path}
}

func processesOf(dir string) []string {
	mark := []byte(dirEnv + "=" + dir)
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, mark) }) {
			found = append(found, "process "+filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}
