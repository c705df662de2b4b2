package manifests

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReferenceListsEveryPolicy compares the table of docs/reference/admission.md with the policies in config/policy and in the components.
// Each policy has one row, which names the component that installs it. The table has no other policies.
func TestReferenceListsEveryPolicy(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (?:(every overlay)|component `([a-z-]+)`[^|]*) \\|")
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		if _, twice := listed[cells[1]]; twice {
			t.Errorf("docs/reference/admission.md lists policy %s twice", cells[1])
		}
		listed[cells[1]] = cells[2] + cells[3]
	}
	policies, _ := shipped(t)
	want := map[string]string{}
	for name := range policies {
		want[name[len(Prefix):]] = "every overlay"
	}
	maps.Copy(want, policiesOfComponents(t))
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("policies (-config +docs/reference/admission.md):\n%s", diff)
	}
}

// policiesOfComponents returns the policies that components install, by their names without prefix, with the component of each. A policy
// that a component only patches is left out.
func policiesOfComponents(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../config/components/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		inRepository, err := filepath.Rel("../..", file)
		if err != nil {
			t.Fatal(err)
		}
		text := read(t, inRepository)
		if !regexp.MustCompile(`(?m)^kind: ValidatingAdmissionPolicy$`).Match(text) {
			continue // a JSON patch, which is a list
		}
		for _, document := range documents(t, text) {
			metadata, _ := document["metadata"].(map[string]any)
			spec, _ := document["spec"].(map[string]any)
			if document["kind"] == "ValidatingAdmissionPolicy" && spec["failurePolicy"] != nil {
				found[strings.TrimPrefix(metadata["name"].(string), Prefix)] = filepath.Base(filepath.Dir(file))
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no policy in %d files: %v", len(files), slices.Sorted(maps.Keys(found)))
	}
	return found
}
