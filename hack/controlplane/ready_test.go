package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
)

// writeProgram writes a program that prints a text.
func writeProgram(t *testing.T, folder, name, text string) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", text)
	if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestReadyBinariesOfTheRightVersionAreUsed(t *testing.T) {
	etcd := "etcd Version: " + strings.TrimPrefix(cache.EtcdVersion, "v")
	for reason, c := range map[string]struct {
		assets, path map[string]string // name and what it prints
		used, said   []string
	}{
		"none is there": {},
		"all in the folder of assets": {
			assets: map[string]string{"etcd": etcd, "kube-apiserver": "Kubernetes v1.36.3", "kubectl": "Client Version: v1.36.3"},
			used:   []string{"etcd", "kube-apiserver", "kubectl"}, said: []string{"using ASSETS/etcd: it is of version"},
		},
		"in the PATH": {
			path: map[string]string{"kube-controller-manager": "Kubernetes v1.36.3"}, used: []string{"kube-controller-manager"},
			said: []string{"using PATH/kube-controller-manager: it is of version 1.36.3"},
		},
		"another version in the folder of assets, the right one in the PATH": {
			assets: map[string]string{"kubectl": "Client Version: v1.36.0"}, path: map[string]string{"kubectl": "Client Version: v1.36.3"},
			used: []string{"kubectl"},
			said: []string{
				"not using ASSETS/kubectl: it is of version 1.36.0, and 1.36.3 is needed", "using PATH/kubectl: it is of version 1.36.3",
			},
		},
		"versions of distributions": {
			path: map[string]string{"kubectl": "Client Version: v1.36.3+k3s1", "kube-apiserver": "Kubernetes v1.36.3-eks-1"},
			said: []string{
				"not using PATH/kube-apiserver: it is of version 1.36.3-eks-1, and 1.36.3 is needed",
				"not using PATH/kubectl: it is of version 1.36.3+k3s1, and 1.36.3 is needed",
			},
		},
		"another etcd": {
			path: map[string]string{"etcd": "etcd Version: 3.5.0"}, said: []string{"not using PATH/etcd: it is of version 3.5.0, and 3.6"},
		},
		"no version":      {path: map[string]string{"etcd": "hello"}, said: []string{"not using PATH/etcd: it prints no version"}},
		"what is not one": {path: map[string]string{"kubelet": "Kubernetes v1.36.3"}},
	} {
		t.Run(reason, func(t *testing.T) {
			assets, path, dir := t.TempDir(), t.TempDir(), t.TempDir()
			for name, text := range c.assets {
				writeProgram(t, assets, name, text)
			}
			for name, text := range c.path {
				writeProgram(t, path, name, text)
			}
			t.Setenv(assetsEnv, assets)
			t.Setenv("PATH", path)
			var out bytes.Buffer
			rest := copyReady(t.Context(), &out, t.TempDir(), "1.36.3", dir, cache.Components())
			want := slices.DeleteFunc(cache.Components(), func(name string) bool { return slices.Contains(c.used, name) })
			if !slices.Equal(rest, want) || !slices.Equal(cache.Missing(dir, cache.Components()), want) {
				t.Errorf("%v are still to be built, want %v", rest, want)
			}
			said := strings.NewReplacer(assets, "ASSETS", path, "PATH").Replace(out.String())
			for _, line := range c.said {
				if !strings.Contains(said, line) {
					t.Errorf("printed:\n%swithout %q", said, line)
				}
			}
			if len(c.said) == 0 && said != "" {
				t.Errorf("printed %q", said)
			}
		})
	}
}

func TestReadyBinaryThatCannotRunIsNotUsed(t *testing.T) {
	path, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "etcd"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(assetsEnv, "")
	t.Setenv("PATH", path)
	var out bytes.Buffer
	if rest := copyReady(t.Context(), &out, t.TempDir(), "1.36.3", dir, []string{"etcd"}); !slices.Equal(rest, []string{"etcd"}) {
		t.Errorf("%v are still to be built", rest)
	}
	if !strings.Contains(out.String(), "asking it for its version") {
		t.Errorf("printed %q", out.String())
	}
}

func TestReadmeNamesTheVersions(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	want := "Kubernetes " + cache.DefaultVersion + " and etcd " + wantedVersion("etcd", "")
	if err != nil || !strings.Contains(string(page), want) {
		t.Errorf("README.md does not say %q (%v)", want, err)
	}
}
