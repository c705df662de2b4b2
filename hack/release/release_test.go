package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestSectionOfTheChangelog(t *testing.T) {
	const text = "# Changelog\n\nWords.\n\n## Unreleased\n- new\n\n## v1.0.0\n- first\n"
	for title, want := range map[string]string{"Unreleased": "- new\n", "v1.0.0": "- first\n", "v2.0.0": ""} {
		got, ok := sectionOf(text, title)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v; want %q", title, got, ok, want)
		}
	}
}

func TestLinksOfTheChangelogLeadToTheVersion(t *testing.T) {
	got := release{version: "v1.2.3"}.withFullLinks("[guide](docs/guides/kind.md#a), [far](https://example.com/x)")
	if want := "[guide](" + repository + "/blob/v1.2.3/docs/guides/kind.md#a), [far](https://example.com/x)"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestReleaseOfThePlugins(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"plugins/linux/amd64/kubectl-warren", "plugins/linux/amd64/kubectl-sudo",
		"plugins/windows/arm64/kubectl-warren.exe", "plugins/windows/arm64/kubectl-sudo.exe"} {
		writeFile(t, file, file)
	}
	writeFile(t, "LICENSE", "the licence")
	writeFile(t, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n- new\n")
	var sums []string
	for _, out := range []string{"one", "two"} {
		if err := (release{version: "v1.2.3", commit: "c0ffee", plugins: "plugins", out: out}).run(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
	}
	if sums[0] != sums[1] {
		t.Errorf("two releases differ:\n%s\n%s", sums[0], sums[1])
	}
	manifest := krewPlugin{}
	read(t, "one/krew/warren.yaml", func(text []byte) error { return yaml.Unmarshal(text, &manifest) })
	if len(manifest.Spec.Platforms) != 2 || manifest.Spec.Platforms[1].Bin != "kubectl-warren.exe" {
		t.Errorf("got platforms %v", manifest.Spec.Platforms)
	}
	for _, p := range manifest.Spec.Platforms {
		if !strings.Contains(sums[0], p.SHA256+"  "+filepath.Base(p.URI)+"\n") {
			t.Errorf("the checksum of %s is not that of its file:\n%s", p.URI, sums[0])
		}
	}
	s := statement{}
	read(t, "one/provenance.json", func(text []byte) error { return json.Unmarshal(text, &s) })
	if len(s.Subject) != strings.Count(sums[0], "\n") || s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"] != "c0ffee" {
		t.Errorf("got provenance %v", s)
	}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string, decode func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = decode(text)
	}
	if err != nil {
		t.Fatal(err)
	}
}
