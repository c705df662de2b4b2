package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const repository = "../.."

// TestForms reads every YAML file of .github, and checks that all make targets in workflows and in their matrix exist in the Makefile.
func TestForms(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(repository, ".github", "*", "*.yml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files in .github (%v), expected 5 or more", len(files), err)
	}
	for _, file := range append(files, filepath.Join(repository, ".github", "dependabot.yml")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(text, &content); err != nil || len(content) < 2 {
			t.Errorf("%s is no YAML object with two keys or more: %v", file, err)
		}
		for _, target := range targetsOf(string(text)) {
			if !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("%s names make target %s, which the Makefile does not have", file, target)
			}
		}
	}
}

// targetsOf returns the make targets that a workflow names, in its commands and in a list "target" of its matrix.
func targetsOf(workflow string) []string {
	var targets []string
	for _, found := range regexp.MustCompile(`make ([a-z][a-z0-9-]*)`).FindAllStringSubmatch(workflow, -1) {
		targets = append(targets, found[1])
	}
	for _, found := range regexp.MustCompile(`target: \[(.*)\]`).FindAllStringSubmatch(workflow, -1) {
		targets = append(targets, strings.Split(found[1], ", ")...)
	}
	return targets
}

func TestTargetsOf(t *testing.T) {
	got := targetsOf("target: [a, b-c]\nrun: sudo make e2e-node\n")
	if want := "e2e-node a b-c"; strings.Join(got, " ") != want {
		t.Errorf("targetsOf returns %q, expected %s", got, want)
	}
}
