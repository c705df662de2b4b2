package mirror_test

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// mayCompare are the packages that still ask by themselves which of two versions is newer, and why. This list may only become shorter.
// What a new part has been shown of a kind, it keeps in a Table.
var mayCompare = map[string]string{
	"controllers/access":      "recent.go keeps the whole objects that were written; not moved yet",
	"controllers/certificate": "it remembers one version for each of two objects",
	"controllers/copies":      "it compares versions of two kinds: of a copy, and of Namespaces",
	"internal/copies":         "it finds the newest copy in a namespace, for controllers/copies",
	"internal/distribute":     "obstacles, which a watch shows that comes and goes; and its own status",
	"internal/mirror":         "it is the place for this",
	"internal/newest":         "it asks about objects that the cache keeps; not moved yet",
	"internal/operator":       "it asks whether the whole cluster was restored from a backup",
	"internal/view":           "the snapshot of the forest has the namespaces, and the store of the informer what exists",
}

func TestOnlyThesePackagesCompareVersions(t *testing.T) {
	root, found := os.DirFS("../.."), map[string]bool{}
	for _, top := range []string{"cmd", "controllers", "internal", "webhooks"} {
		err := fs.WalkDir(root, top, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, file)
			if strings.Contains(string(text), "forest.IsNewer") {
				found[path.Dir(file)] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range found {
		if mayCompare[name] == "" {
			t.Errorf("package %s calls forest.IsNewer: keep what a watch has shown in a mirror.Table, and ask that", name)
		}
	}
	for name := range mayCompare {
		if !found[name] {
			t.Errorf("package %s calls forest.IsNewer no longer: remove it from this list", name)
		}
	}
}
