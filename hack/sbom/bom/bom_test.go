package bom

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestEveryModuleIsListed(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.1", Main: debug.Module{Path: "example.com/main", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.3+incompatible", Sum: "h1:abc="},
			{Path: "example.com/old", Version: "v0.1.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v0.2.0"}},
			{Path: "example.com/main/part", Version: "v0.0.0", Replace: &debug.Module{Path: "./part"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-s"}},
	}
	text, err := encodeJSON(listModules(info, "v1"))
	if err != nil {
		t.Fatal(err)
	}
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, c := range *b.Components {
		urls = append(urls, c.PackageURL)
	}
	want := "pkg:golang/std@1.26.1 pkg:golang/example.com/a@v1.2.3%2Bincompatible pkg:golang/example.com/fork@v0.2.0 " +
		"pkg:golang/example.com/main/part@v1"
	if got := strings.Join(urls, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if main := b.Metadata.Component; main.Name != "example.com/main" || main.Version != "v1" {
		t.Errorf("it is the list of %+v", main)
	}
	if (*b.Dependencies)[0].Ref != "example.com/main" || len(*(*b.Dependencies)[0].Dependencies) != 4 {
		t.Errorf("dependencies %+v", b.Dependencies)
	}
	if len(*b.Metadata.Properties) != 1 {
		t.Errorf("settings %+v", b.Metadata.Properties)
	}
	again, err := encodeJSON(listModules(info, "v1"))
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("two lists of one binary differ: %v", err)
	}
}

// The test's own binary is a Go program, so it has a bill of materials.
func TestOfABinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := Of("v1", self, self)
	if err != nil || !bytes.Contains(text, []byte(`"pkg:golang/std@1.`)) {
		t.Errorf("%v in %s", err, text)
	}
	if once, err := Of("v1", self); err != nil || !bytes.Equal(once, text) {
		t.Errorf("what two binaries share stands there twice (error %v)", err)
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Of("", file); err == nil || !strings.Contains(err.Error(), "must be a Go program") {
		t.Errorf("got %v", err)
	}
}
