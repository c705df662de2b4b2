package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBrokenLinks(t *testing.T) {
	root := t.TempDir()
	for name, lines := range map[string][]string{
		"README.md": {
			"# Top",
			"[good](docs/a.md), [folder](docs), [far](https://example.com/x), [heading](docs/a.md#2-one--two-kubectl)",
			"[gone](docs/b.md) and ![picture](c.png)",
			"`[code](nowhere.md)`",
			"```",
			"[fenced](nowhere.md)",
			"```",
			"[own](#top) [other](docs/a.md#three)",
			"[ref]: docs/d.md",
		},
		"docs/a.md":      {"## 2. One – two: `kubectl`", "[up](../README.md)"},
		".hidden/bad.md": {"[gone](x.md)"},
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken, err := brokenLinks(root)
	if err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(root, "README.md")
	want := []string{
		readme + ":3: link to docs/b.md: no such file",
		readme + ":3: link to c.png: no such file",
		readme + ":8: link to docs/a.md#three: no such heading",
		readme + ":9: link to docs/d.md: no such file",
	}
	if diff := cmp.Diff(want, broken); diff != "" {
		t.Errorf("broken links (-want +got):\n%s", diff)
	}
}
