//go:build linux

package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCoveredFolders(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/var/lib", link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/var/lib": "/var/lib", "/var/lib/ci/clone": "/var/lib", "/run/user/0": "/run", link: "/var/lib",
		"/var/library": "", "/home/ci/clone": "", "/": "",
	} {
		if got := coveredBy(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

func TestMountsOfTheNodeAreKnown(t *testing.T) {
	for line, want := range map[string]bool{
		"9 1 254:0 /tmp/warren-e2e-1/var/lib /var/lib rw shared:1 - ext4 /dev/vda rw": true,
		"9 1 0:40 / /run rw - tmpfs tmpfs rw":                                         true,
		"9 1 0:40 / /run/docker/netns/1 rw - nsfs nsfs rw":                            false,
	} {
		if got := ofNode(line, "/tmp/warren-e2e-1"); got != want {
			t.Errorf("%s: got %t", line, got)
		}
	}
}
