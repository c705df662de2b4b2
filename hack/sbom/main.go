// Command sbom writes the bill of materials of Go binaries of one module, in CycloneDX.
//
//	go run ./hack/sbom -version v1.2.3 -o dist/sbom.cdx.json bin/manager bin/manager-billing bin/manager-bigquery
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/warren-tenancy/warren/hack/sbom/bom"
)

func main() {
	out := flag.String("o", "", "the file to write")
	version := flag.String("version", "", "the version of the binaries")
	flag.Parse()
	if err := run(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(out, version string, binaries []string) error {
	if len(binaries) == 0 || out == "" {
		return errors.New("usage: sbom [-version VERSION] -o FILE BINARY…")
	}
	text, err := bom.Of(version, binaries...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	fmt.Println("wrote", out)
	return nil
}
