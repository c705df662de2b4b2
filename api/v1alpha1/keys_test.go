package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// TestReferenceListsEveryKey compares the table of docs/reference/keys.md with the constants of keys.go: each key has its own row, which
// calls it a label or an annotation as its constant does. The table has no other keys.
func TestReferenceListsEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]*\\| \\**(label|annotation)\\** \\|")
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		listed[cells[1]] = cells[2]
	}
	inTable, beside := keyConstants(t)
	if diff := cmp.Diff(inTable, listed); diff != "" {
		t.Errorf("keys (-keys.go +docs/reference/keys.md):\n%s", diff)
	}
	for _, key := range beside {
		if !strings.Contains(string(page), "`"+key) {
			t.Errorf("docs/reference/keys.md doesn't name %s", key)
		}
	}
}

// keyConstants returns the keys of keys.go: inTable has those of the page's table as the page writes them, each with its kind, label or
// annotation. beside has the keys that the page names outside its table: finalizers, and keys of other domains.
func keyConstants(t *testing.T) (inTable map[string]string, beside []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	inTable = map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, value := spec.Names[0].Name, constantText(spec.Values[0])
		short, ours := strings.CutPrefix(value, v1alpha1.Domain+"/")
		switch {
		case name == "TreeLabelSuffix":
			inTable["<ancestor>"+value] = "label"
		case strings.HasPrefix(name, "Label") && ours:
			inTable[short] = "label"
		case strings.HasPrefix(name, "Annotation") && ours:
			inTable[short] = "annotation"
		case strings.HasPrefix(name, "Finalizer") && ours:
			beside = append(beside, short)
		case strings.HasPrefix(name, "Label"), strings.HasPrefix(name, "Annotation"), strings.HasPrefix(name, "Finalizer"):
			beside = append(beside, value)
		}
		return true
	})
	if len(inTable) == 0 || len(beside) == 0 {
		t.Fatalf("keys.go has the keys %v, and beside them %v", slices.Sorted(maps.Keys(inTable)), beside)
	}
	return inTable, beside
}

// constantText returns the text of a constant that joins string literals and the constant Domain by +.
func constantText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.Ident:
		if e.Name == "Domain" {
			return v1alpha1.Domain
		}
	case *ast.BinaryExpr:
		return constantText(e.X) + constantText(e.Y)
	}
	return ""
}
