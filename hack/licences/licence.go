package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed is what may be linked into an Apache-2.0 program that is shipped as a binary.
// blessing is how SPDX calls SQLite's dedication to the public domain.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "blessing"}

const unknown = "unknown"

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	// unlinked are licences of documentation and of pictures, and Go files that only sound like one.
	unlinked = regexp.MustCompile(`(?i)(\.go|\.docs|-logo)$`)

	// Text that stands in one licence and in no other, in lower case, with single spaces.
	phrases = []struct{ name, text string }{
		{"Apache-2.0", "apache license version 2.0, january 2004"},
		{"Apache-2.0", "licensed under the apache license, version 2.0"},
		{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
		{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
		{"MPL-2.0", "mozilla public license version 2.0"},
		{"MPL-2.0", "mozilla public license, version 2.0"},
		{"blessing", "all of the code and documentation in sqlite has been dedicated to the public domain by the authors"},
		{"Unlicense", "this is free and unencumbered software released into the public domain"},
		{"Commons-Clause", "commons clause"},
		{"BUSL", "business source license"},
		{"SSPL", "server side public license"},
		{"EPL", "eclipse public license - v"},
	}

	// The MPL names the GPL too, but not as its title.
	gnuTitle = regexp.MustCompile(`^[^a-z]*gnu (affero |lesser |library )?general public license`)
)

// identifyLicences returns the licences whose text a file holds, sorted.
func identifyLicences(text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var found []string
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			found = append(found, p.name)
		}
	}
	if strings.Contains(text, "redistribution and use in source and binary forms, with or without modification, are permitted") {
		if strings.Contains(text, "to endorse or promote products") {
			found = append(found, "BSD-3-Clause")
		} else {
			found = append(found, "BSD-2-Clause")
		}
	}
	if gnuTitle.MatchString(text) {
		found = append(found, "GPL")
	}
	if len(found) == 0 {
		found = append(found, unknown)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// findLicences returns those of the module, and of the folders that lead to its linked packages.
func (m module) findLicences() ([]string, error) {
	folders := map[string]bool{m.dir: true}
	for _, dir := range m.packages {
		for ; len(dir) > len(m.dir); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	var found []string
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("looking for the licence of %s: %w", m.path, err)
		}
		for _, entry := range entries {
			if entry.IsDir() || !licenceFile.MatchString(entry.Name()) || unlinked.MatchString(entry.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, fmt.Errorf("reading the licence of %s: %w", m.path, err)
			}
			found = append(found, identifyLicences(string(text))...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func judgeModule(licences []string) error {
	if len(licences) == 0 {
		return errors.New("no licence file")
	}
	for _, licence := range licences {
		if !slices.Contains(allowed, licence) {
			return fmt.Errorf("licence %s is not one of %s", licence, strings.Join(allowed, ", "))
		}
	}
	return nil
}
