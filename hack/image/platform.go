package main

import (
	"debug/buildinfo"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// platformOfAll returns the platform of all binaries, or an error if they differ.
func platformOfAll(binaries []string) (first v1.Platform, err error) {
	for i, binary := range binaries {
		p, err := platformOf(binary)
		if err != nil {
			return p, err
		}
		if i == 0 {
			first = p
		} else if p.OS != first.OS || p.Architecture != first.Architecture || p.Variant != first.Variant {
			return p, fmt.Errorf("%s is built for another machine than %s: an image is for one", binary, binaries[0])
		}
	}
	return first, nil
}

// platformOf reads from the binary for which platform it was built, and refuses a binary that could not start in an otherwise empty image.
func platformOf(binary string) (v1.Platform, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return v1.Platform{}, fmt.Errorf("reading how %s was built: %w; it must be a Go program", binary, err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["GOOS"] != "linux" {
		return v1.Platform{}, fmt.Errorf("%s is built for GOOS=%s: an image needs GOOS=linux", binary, settings["GOOS"])
	}
	if settings["CGO_ENABLED"] != "0" {
		return v1.Platform{}, fmt.Errorf("%s is built with CGO_ENABLED=%s: the image has no C library, build with CGO_ENABLED=0", binary,
			settings["CGO_ENABLED"])
	}
	return v1.Platform{OS: "linux", Architecture: settings["GOARCH"]}, nil
}
