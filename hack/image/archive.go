package main

import (
	"archive/tar"
	"bytes"
	_ "crypto/sha256" // go-digest knows only the algorithms that are linked in
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// user is numeric, because the image has no passwd file, and because runAsNonRoot requires a number other than 0.
const user = "65532:65532"

// image is an image of one layer.
type image struct {
	name       reference.NamedTagged
	platform   v1.Platform
	created    time.Time
	entrypoint string
	labels     map[string]string
	layer      []byte // a tar file
}

// sbom is the name of the bill of materials in the image.
const sbom = "sbom.cdx.json"

// layerOf returns a tar file with the binaries, owned by root and executable by all, and with their bill of materials.
func layerOf(binaries []string, materials []byte, modified time.Time) ([]byte, error) {
	var layer bytes.Buffer
	w := tarWriter{Writer: tar.NewWriter(&layer), modified: modified}
	for _, binary := range binaries {
		content, err := os.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("reading the binary: %w", err)
		}
		w.file(filepath.Base(binary), 0o755, content)
	}
	w.file(sbom, 0o644, materials)
	err := w.finish() // writes the end of the archive, so layer is complete
	return layer.Bytes(), err
}

// writeArchive writes the image as an OCI layout. manifest.json is Docker's table of contents of the same blobs.
func (i image) writeArchive(out io.Writer) error {
	w := tarWriter{Writer: tar.NewWriter(out), modified: i.created}
	layer := w.blob(v1.MediaTypeImageLayer, i.layer)
	config := w.blob(v1.MediaTypeImageConfig, encodeJSON(i.imageConfig(layer.Digest)))
	manifest := w.blob(v1.MediaTypeImageManifest, encodeJSON(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config, Layers: []v1.Descriptor{layer},
	}))
	manifest.Platform = &i.platform
	// containerd reads the image's name from the first key; other tools read its tag from the second.
	manifest.Annotations = map[string]string{
		"io.containerd.image.name": i.name.String(), v1.AnnotationRefName: i.name.Tag(),
	}
	w.file(v1.ImageIndexFile, 0o644, encodeJSON(v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{manifest},
	}))
	w.file("manifest.json", 0o644, encodeJSON([]dockerImage{{
		Config: blobPath(config.Digest), RepoTags: []string{reference.FamiliarString(i.name)}, Layers: []string{blobPath(layer.Digest)},
	}}))
	w.file(v1.ImageLayoutFile, 0o644, encodeJSON(v1.ImageLayout{Version: v1.ImageLayoutVersion}))
	return w.finish()
}

func (i image) imageConfig(layer digest.Digest) v1.Image {
	return v1.Image{
		Created: &i.created, Platform: i.platform,
		Config: v1.ImageConfig{User: user, Entrypoint: []string{i.entrypoint}, WorkingDir: "/", Labels: i.labels},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer}},
	}
}

// dockerImage is an entry of Docker's manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// tarWriter writes files whose headers do not depend on the machine. It keeps the first error, and finish returns that.
type tarWriter struct {
	*tar.Writer
	modified time.Time
	err      error
}

func (w *tarWriter) blob(mediaType string, content []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	w.file(blobPath(d.Digest), 0o644, content)
	return d
}

func (w *tarWriter) file(name string, mode int64, content []byte) {
	if w.err != nil {
		return
	}
	w.err = w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: w.modified, Format: tar.FormatUSTAR,
	})
	if w.err == nil {
		_, w.err = w.Write(content)
	}
}

func (w *tarWriter) finish() error {
	if w.err != nil {
		return w.err
	}
	return w.Close()
}

func blobPath(d digest.Digest) string {
	return v1.ImageBlobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

func encodeJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // the values hold only strings, numbers and a date
		panic(fmt.Sprintf("encoding a part of the image: %v", err))
	}
	return text
}
