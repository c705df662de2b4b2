// Package bom lists what a Go binary is made of, as CycloneDX, from what the Go tool wrote into it. The same binary
// gives the same bytes: the list has no date and no serial number.
package bom

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Of returns the bill of materials of some binaries of one module, in JSON. version is the version of that module.
func Of(version string, binaries ...string) ([]byte, error) {
	var all *debug.BuildInfo
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("reading what %s is made of: %w; it must be a Go program", binary, err)
		}
		if all == nil {
			all = info
			continue
		}
		all.Deps = append(all.Deps, info.Deps...)
	}
	return encodeJSON(listModules(all, version))
}

func listModules(info *debug.BuildInfo, version string) *cdx.BOM {
	if version == "" {
		version = info.Main.Version
	}
	main := componentOf(cdx.ComponentTypeApplication, &debug.Module{Path: info.Main.Path, Version: version})
	// The standard library is linked in like any module, and security advisories name it by Go's version.
	std := cdx.Component{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}
	components, refs := []cdx.Component{std}, []string{std.BOMRef}
	for _, module := range info.Deps {
		switch {
		case module.Replace == nil:
		case module.Replace.Version == "": // a folder of this repository
			module = &debug.Module{Path: module.Path, Version: version}
		default:
			module = module.Replace
		}
		if slices.Contains(refs, module.Path) { // two binaries have it
			continue
		}
		c := componentOf(cdx.ComponentTypeLibrary, module)
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &main, Properties: buildSettings(info)}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return b
}

func componentOf(kind cdx.ComponentType, module *debug.Module) cdx.Component {
	c := cdx.Component{
		BOMRef: module.Path, Type: kind, Name: module.Path, Version: module.Version,
		PackageURL: "pkg:golang/" + module.Path + "@" + url.QueryEscape(module.Version),
	}
	if module.Sum != "" { // Go's hash of a module's files is of no kind that CycloneDX names
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return c
}

// buildSettings returns how the binary was built: for which machine, and from which commit.
func buildSettings(info *debug.BuildInfo) *[]cdx.Property {
	var properties []cdx.Property
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-trimpath", "vcs.revision", "vcs.modified":
			properties = append(properties, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
		}
	}
	return &properties
}

func encodeJSON(b *cdx.BOM) ([]byte, error) {
	var text bytes.Buffer
	err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cdx.SpecVersion1_6)
	if err != nil {
		return nil, fmt.Errorf("writing the bill of materials: %w", err)
	}
	return text.Bytes(), nil
}
