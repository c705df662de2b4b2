package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"registry.example/warren:v1":         "registry.example/warren:v1",
		"localhost:5000/warren:v1":           "localhost:5000/warren:v1",
		"warren:v1":                          "docker.io/library/warren:v1", // a kubelet completes the name so
		"":                                   "",
		"registry.example/warren":            "",
		"registry.example:5000/warren":       "",
		"registry.example/Warren:v1":         "",
		"warren@sha256:" + zeros:             "",
		"registry/warren:v1@sha256:" + zeros: "",
	} {
		got, err := parseName(name)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q was accepted", name)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestSourceDate(t *testing.T) {
	for epoch, want := range map[string]int64{"": 0, "1700000000": 1700000000, "yesterday": -1, "-5": -1} {
		got, err := sourceDate(epoch)
		if (err != nil) != (want < 0) || err == nil && got.Unix() != want {
			t.Errorf("%q: %v, %v", epoch, got, err)
		}
	}
}

func testArchive(t *testing.T, modified time.Time) map[string][]byte {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(binary, []byte("the binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(binary, modified, modified); err != nil {
		t.Fatal(err)
	}
	name, err := parseName("warren:v1")
	if err != nil {
		t.Fatal(err)
	}
	layer, err := layerOf([]string{binary}, []byte("what it is made of"), time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	i := image{
		name: name, platform: v1.Platform{OS: "linux", Architecture: "arm64"}, created: time.Unix(0, 0).UTC(),
		entrypoint: "/manager", labels: imageLabels("v1", ""), layer: layer,
	}
	var out bytes.Buffer
	if err := i.writeArchive(&out); err != nil {
		t.Fatal(err)
	}
	files := untar(t, out.Bytes())
	files["whole"] = out.Bytes()
	return files
}

func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestArchiveSaysNothingOfTheFilesDate(t *testing.T) {
	one, other := testArchive(t, time.Unix(1, 0)), testArchive(t, time.Unix(2e9, 0))
	if !bytes.Equal(one["whole"], other["whole"]) {
		t.Error("two images of one binary differ")
	}
}

// Readers find the blobs by the digests in index.json or, like Docker, in manifest.json. Both must lead to the same blobs.
func TestArchiveIsWhole(t *testing.T) {
	files := testArchive(t, time.Now())
	blob := func(d v1.Descriptor) []byte {
		content := files[blobPath(d.Digest)]
		if digest.FromBytes(content) != d.Digest || int64(len(content)) != d.Size {
			t.Errorf("blob %s isn't what its digest says", d.Digest)
		}
		return content
	}
	index := decode[v1.Index](t, files["index.json"])
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/library/warren:v1" {
		t.Fatalf("index.json: %s", files["index.json"])
	}
	manifest := decode[v1.Manifest](t, blob(index.Manifests[0]))
	config := decode[v1.Image](t, blob(manifest.Config))
	layer := blob(manifest.Layers[0])
	if diff := cmp.Diff(v1.ImageConfig{
		User: "65532:65532", Entrypoint: []string{"/manager"}, WorkingDir: "/",
		Labels: map[string]string{"org.opencontainers.image.version": "v1"},
	}, config.Config); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]digest.Digest{digest.FromBytes(layer)}, config.RootFS.DiffIDs); diff != "" {
		t.Error(diff)
	}
	// A tar file ends with 1024 zero bytes. Go reads one without this end; other programs don't.
	if !bytes.HasSuffix(layer, make([]byte, 1024)) || len(layer)%512 != 0 {
		t.Errorf("the layer of %d bytes isn't whole", len(layer))
	}
	if got := string(untar(t, layer)["manager"]); got != "the binary" {
		t.Errorf("the layer holds %q", got)
	}
	if got := string(untar(t, layer)[sbom]); got != "what it is made of" {
		t.Errorf("the bill of materials is %q", got)
	}
	want := []dockerImage{{
		Config: blobPath(manifest.Config.Digest), RepoTags: []string{"warren:v1"}, Layers: []string{blobPath(manifest.Layers[0].Digest)},
	}}
	if diff := cmp.Diff(want, decode[[]dockerImage](t, files["manifest.json"])); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := platformOf(file); err == nil || !strings.Contains(err.Error(), "must be a Go program") {
		t.Errorf("got %v", err)
	}
}

func TestHalfAFileIsNotLeft(t *testing.T) {
	dir := t.TempDir()
	err := writeByRename(filepath.Join(dir, "sub", "image.tar"), func(io.Writer) error { return errors.New("disk full") })
	left, _ := filepath.Glob(filepath.Join(dir, "sub", "*"))
	if err == nil || len(left) > 0 {
		t.Errorf("got %v, left %v", err, left)
	}
}
