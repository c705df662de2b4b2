// Command image writes the image of static binaries, with their bill of materials, to a file, without a daemon and without root.
//
//	go run ./hack/image -name registry.example/warren:v1 -o dist/image.tar bin/linux-amd64/manager bin/linux-amd64/manager-billing \
//	    bin/linux-amd64/manager-bigquery bin/linux-amd64/kubectl-warren
//
// The first binary is the image's entrypoint. The file is an OCI layout with the manifest.json of Docker's format, as `docker save`
// writes it, so that docker load, podman load, ctr images import, kind load and skopeo can all read it. The same binaries give the same
// bytes. The image has the date SOURCE_DATE_EPOCH, in seconds since 1970; if that is not set, the date is 1 January 1970.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/warren-tenancy/warren/hack/sbom/bom"
)

func main() {
	name := flag.String("name", "", "the image's name with its tag")
	out := flag.String("o", "", "the file to write")
	version := flag.String("version", "", "the version, for the image's labels")
	revision := flag.String("revision", "", "the commit, for the image's labels")
	flag.Parse()
	if err := run(*name, *out, *version, *revision, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(name, out, version, revision string, binaries []string) error {
	if len(binaries) == 0 || out == "" {
		return errors.New("usage: image -name NAME:TAG -o FILE BINARY…")
	}
	ref, err := parseName(name)
	if err != nil {
		return err
	}
	p, err := platformOfAll(binaries)
	if err != nil {
		return err
	}
	created, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	materials, err := bom.Of(version, binaries...)
	if err != nil {
		return err
	}
	layer, err := layerOf(binaries, materials, created)
	if err != nil {
		return err
	}
	i := image{
		name: ref, platform: p, created: created, layer: layer, entrypoint: "/" + filepath.Base(binaries[0]),
		labels: imageLabels(version, revision),
	}
	if err := writeByRename(out, i.writeArchive); err != nil {
		return err
	}
	fmt.Printf("wrote %s: %s, %s, %.1f MB\n", out, ref, p.OS+"/"+p.Architecture, float64(len(layer))/1e6)
	return nil
}

// sourceDate returns the date of everything in the image. epoch is SOURCE_DATE_EPOCH, the usual variable of reproducible builds.
func sourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: must be seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func imageLabels(version, revision string) map[string]string {
	all := map[string]string{}
	for key, value := range map[string]string{"version": version, "revision": revision} {
		if value != "" {
			all["org.opencontainers.image."+key] = value
		}
	}
	return all
}
