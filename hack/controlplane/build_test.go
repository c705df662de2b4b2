package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/test/devcluster/cache"
)

func TestScratchModuleReplacesStagingModulesByPublishedOnes(t *testing.T) {
	got, err := scratchGoMod([]byte(`module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require k8s.io/api v0.0.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	example.com/other => example.com/fork v1.0.0
)
`), "1.36.3")
	want := `module controlplane

go 1.26.0

godebug default=go1.26

require k8s.io/kubernetes v1.36.3

replace k8s.io/api => k8s.io/api v0.36.3
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestOldGoIsRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"go1.26.8": true, "go1.27rc1": true, "devel go1.28-abc Mon": true, "go1.26.1 X:nocoverageredesign": true,
		"go1.25.9": false, "go1.9": false,
	} {
		if err := newEnough(version); (err == nil) != ok {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestComponentsAreChosen(t *testing.T) {
	got, err := wantedComponents("kubelet, kubelet,etcd")
	if want := append(cache.Components(), "kubelet"); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := wantedComponents("kubelets"); err == nil || !strings.Contains(err.Error(), `"kubelets"`) {
		t.Errorf("got %v", err)
	}
}

func TestDiskSpaceOfAFolderThatIsYetToBeMade(t *testing.T) {
	if free, err := freeBytes(t.TempDir() + "/not/yet"); err != nil || free == 0 {
		t.Errorf("got %d, %v", free, err)
	}
}
