package watchset_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that imports the package gets none of Warren's other dependencies, such as the clients of databases.
func TestModuleIsImportedAlone(t *testing.T) {
	const path = "github.com/warren-tenancy/warren/pkg/watchset"
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module example.com/own\n\ngo 1.26.0\n\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + here + "\n",
		"go.sum":  string(sums),
		"main.go": "package main\n\nimport \"" + path + "\"\n\nfunc main() { _ = watchset.Cluster() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runGo := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	runGo("build", "-mod=mod", "-o", filepath.Join(dir, "own"), ".")
	modules := runGo("list", "-mod=mod", "-m", "all")
	if !strings.Contains(modules, "sigs.k8s.io/controller-runtime") {
		t.Errorf("the list of modules lacks controller-runtime:\n%s", modules)
	}
	for _, foreign := range []string{"bigquery", "pgx", "sqlite", "github.com/warren-tenancy/warren "} {
		if strings.Contains(modules, foreign) {
			t.Errorf("the list of modules has %s:\n%s", foreign, modules)
		}
	}
}
