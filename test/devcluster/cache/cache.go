// Package cache says where the control plane's binaries lie and with which settings they are built, so that the
// program that builds them and the package that starts them never disagree.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// DefaultVersion is the Kubernetes version that is built and started unless VersionEnv asks for another one.
const DefaultVersion = "1.36.3"

// VersionEnv names the environment variable that asks for another version, in everything that starts a control plane.
const VersionEnv = "WARREN_KUBERNETES_VERSION"

// EtcdVersion is the module version of etcd that every Kubernetes version runs with.
const EtcdVersion = "v3.6.16"

// DirEnv names the environment variable that points to a folder of ready binaries. If it is set, the cache is not used.
const DirEnv = "WARREN_CONTROLPLANE"

// layout must change when the content of the cache folder changes in a way that the other inputs of key don't show.
const layout = "1"

// Version returns the Kubernetes version that VersionEnv asks for, else DefaultVersion.
func Version() string {
	if version := os.Getenv(VersionEnv); version != "" {
		return version
	}
	return DefaultVersion
}

// Versions returns the Kubernetes versions that are known to build.
func Versions() []string { return []string{"1.36.3", "1.35.4", "1.34.4"} }

// Components returns the names of a control plane's binaries, in the order in which they are built.
func Components() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kubectl"}
}

// NodeComponents returns the names of the binaries that only a node needs. They are built only on request.
func NodeComponents() []string { return []string{"kube-scheduler", "kubelet", "kube-proxy"} }

// Validate refuses a version that is not known to build.
func Validate(version string) error {
	if !slices.Contains(Versions(), version) {
		return fmt.Errorf("unknown Kubernetes version %q: choose one of %s", version, strings.Join(Versions(), ", "))
	}
	return nil
}

// LDFlags are the linker flags of a Kubernetes component: without the version numbers, kubectl complains about skew.
func LDFlags(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion=v"+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor)
	}
	return strings.Join(flags, " ")
}

// Root is the folder of all cached control planes: $XDG_CACHE_HOME/warren/controlplane, or the same under ~/.cache.
func Root() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache folder: %w; set XDG_CACHE_HOME", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "warren", "controlplane"), nil
}

// Dir is the folder of one version's binaries. Its name holds a hash of everything that shapes them, so that another
// Go release or another platform never finds binaries that are not its own.
func Dir(version string) (string, error) {
	if dir := os.Getenv(DirEnv); dir != "" {
		return dir, nil
	}
	if err := Validate(version); err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, version+"-"+key(version, runtime.Version(), runtime.GOOS, runtime.GOARCH)), nil
}

func key(version, goVersion, goos, goarch string) string {
	sum := sha256.Sum256([]byte(strings.Join(
		[]string{layout, version, goVersion, goos, goarch, EtcdVersion, "-trimpath", LDFlags(version)}, "\n")))
	return hex.EncodeToString(sum[:])[:10]
}

// Missing returns the components that are not in the folder as executable files.
func Missing(dir string, components []string) []string {
	var missing []string
	for _, name := range components {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}
