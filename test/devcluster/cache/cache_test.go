package cache

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDirIsNamedAfterEverythingThatShapesTheBinaries(t *testing.T) {
	base := key("1.36.3", "go1.26.0", "linux", "amd64")
	others := map[string]string{
		"another Kubernetes": key("1.35.4", "go1.26.0", "linux", "amd64"),
		"another Go":         key("1.36.3", "go1.26.1", "linux", "amd64"),
		"another system":     key("1.36.3", "go1.26.0", "darwin", "amd64"),
		"another processor":  key("1.36.3", "go1.26.0", "linux", "arm64"),
	}
	for reason, other := range others {
		if other == base {
			t.Errorf("%s must not share the folder of %s", reason, base)
		}
	}
	if again := key("1.36.3", "go1.26.0", "linux", "amd64"); again != base {
		t.Errorf("the same settings gave %s and %s", base, again)
	}
}

func TestDirLiesInTheCacheOrWhereTheEnvironmentSays(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/some/cache")
	t.Setenv(DirEnv, "")
	dir, err := Dir(DefaultVersion)
	if err != nil || !strings.HasPrefix(dir, "/some/cache/warren/controlplane/"+DefaultVersion+"-") {
		t.Errorf("got %q, %v", dir, err)
	}
	t.Setenv(DirEnv, "/ready/made")
	if dir, err = Dir(DefaultVersion); err != nil || dir != "/ready/made" {
		t.Errorf("with %s set: got %q, %v", DirEnv, dir, err)
	}
}

func TestUnknownVersionIsRefusedWithTheKnownOnes(t *testing.T) {
	t.Setenv(DirEnv, "")
	_, err := Dir("1.20.0")
	if err == nil || !strings.Contains(err.Error(), `"1.20.0"`) || !strings.Contains(err.Error(), "1.34.4") {
		t.Errorf("got %v", err)
	}
}

func TestVersionIsTheDefaultUnlessTheEnvironmentAsksForAnother(t *testing.T) {
	t.Setenv(VersionEnv, "")
	if got := Version(); got != DefaultVersion {
		t.Errorf("got %s", got)
	}
	t.Setenv(VersionEnv, "1.34.4")
	if got := Version(); got != "1.34.4" {
		t.Errorf("got %s", got)
	}
}

func TestMissingWantsExecutableFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("etcd", 0o755)
	write("kubectl", 0o644)
	got := Missing(dir, []string{"etcd", "kubectl", "kubelet"})
	if want := []string{"kubectl", "kubelet"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
