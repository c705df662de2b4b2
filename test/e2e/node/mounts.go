//go:build linux

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hostSysctls are settings that the kubelet would change for the whole machine, unless they have these values. So files with these values
// are mounted over them.
var hostSysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// mountOwn gives the enclosure its own /proc, /run, /var/lib and /var/log: kubelet, containerd and the CNI plugins have
// paths there that no option moves.
func mountOwn(dir string) error {
	if dir == "" {
		return fmt.Errorf("%s is not set: only Enclosure.Run starts this", dirEnv)
	}
	// First, no mount from inside may appear outside. Then, containers must see what is mounted inside.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	for _, place := range []string{"/var/lib", "/var/log"} {
		own := filepath.Join(dir, place)
		if err := os.MkdirAll(own, 0o755); err != nil {
			return fmt.Errorf("making the node's folders: %w", err)
		}
		if err := mount(own, place, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return mountSysctls(dir)
}

func mountSysctls(dir string) error {
	for name, value := range hostSysctls {
		file := filepath.Join(dir, "sysctl", strings.ReplaceAll(name, "/", "."))
		if err := writeFile(file, value+"\n"); err != nil {
			return err
		}
		if err := mount(file, "/proc/sys/"+name, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, fsType string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, fsType, flags, data); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return nil
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("writing the node's files: %w", err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the node's files: %w", err)
	}
	return nil
}
