package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// statement is an in-toto statement, version 1, about files: https://in-toto.io/Statement/v1. It isn't signed.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []material `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// material is a file or a source, and its digests.
type material struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// provenance describes how the files were made: https://slsa.dev/provenance/v1.
type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []material        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder map[string]string `json:"builder"`
	} `json:"runDetails"`
}

// writeChecksums writes SHA256SUMS and provenance.json, about all files that the release has so far.
func (r release) writeChecksums() error {
	var files []material
	err := filepath.WalkDir(r.out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		sum := sha256.Sum256(content)
		files = append(files, material{Name: filepath.ToSlash(name), Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
		return err
	})
	if err != nil {
		return fmt.Errorf("reading what the release ships: %w", err)
	}
	var sums strings.Builder
	for _, f := range files {
		fmt.Fprintf(&sums, "%s  %s\n", f.Digest["sha256"], f.Name)
	}
	text, err := json.MarshalIndent(r.statementOn(files), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the provenance: %w", err)
	}
	if err := r.write("SHA256SUMS", []byte(sums.String())); err != nil {
		return err
	}
	return r.write("provenance.json", append(text, '\n'))
}

func (r release) statementOn(files []material) statement {
	s := statement{Type: "https://in-toto.io/Statement/v1", Subject: files, PredicateType: "https://slsa.dev/provenance/v1"}
	s.Predicate.BuildDefinition.BuildType = repository + "/blob/main/hack/release.sh"
	s.Predicate.BuildDefinition.ExternalParameters = map[string]string{"version": r.version, "go": runtime.Version()}
	s.Predicate.BuildDefinition.ResolvedDependencies = []material{{URI: "git+" + repository, Digest: map[string]string{"gitCommit": r.commit}}}
	s.Predicate.RunDetails.Builder = map[string]string{"id": repository + "/blob/main/Makefile#release"}
	return s
}
