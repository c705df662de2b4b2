// Package names_test checks the names of the product's functions against docs/design.md.
package names_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../.."
	// mostOneWord is the percentage of the unexported functions that may have a name of one word. In the projects that CONTRIBUTING.md names
	// as examples, it is 2 to 13.
	mostOneWord = 8
)

// notProduct are folders whose functions don't count: tests, programs for developers and the example.
var notProduct = []string{"test", "hack", "examples", ".git", "dist", ".dev"}

// declared returns the names of all functions, methods, types and values that the product declares.
// Its tests and its generated files don't count.
func declared(t *testing.T) (functions []*ast.FuncDecl, all map[string]bool) {
	t.Helper()
	all = map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if relative, _ := filepath.Rel(root, path); entry.IsDir() && slices.Contains(notProduct, relative) {
			return filepath.SkipDir
		}
		isProduct := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(entry.Name(), "zz_")
		if entry.IsDir() || !isProduct {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				functions = append(functions, d)
				all[d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						all[s.Name.Name] = true
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return functions, all
}

func TestFewFunctionsHaveANameOfOneWord(t *testing.T) {
	functions, _ := declared(t)
	oneWord := regexp.MustCompile(`^[a-z]+[0-9]*$`)
	var short []string
	total := 0
	for _, f := range functions {
		if f.Name.IsExported() || slices.Contains([]string{"main", "init", "_"}, f.Name.Name) {
			continue
		}
		total++
		if oneWord.MatchString(f.Name.Name) {
			short = append(short, f.Name.Name)
		}
	}
	if total == 0 || len(short)*100 > mostOneWord*total {
		slices.Sort(short)
		t.Errorf("%d of %d unexported functions have a name of one word, more than %d %%: name a verb and its object, as docs/design.md does; "+
			"they are %s", len(short), total, mostOneWord, strings.Join(slices.Compact(short), ", "))
	}
	t.Logf("%d of %d unexported functions have a name of one word", len(short), total)
}

// Each row of the table of verbs in docs/design.md has examples in its last column. The code must declare these names.
func TestExamplesOfTheTableOfVerbsExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(page), "### Verbs and nouns of the code\n")
	chapter, _, ends := strings.Cut(chapter, "\n## ")
	if !found || !ends {
		t.Fatal("docs/design.md has no chapter \"Verbs and nouns of the code\" before another one: this test reads its table")
	}
	_, all := declared(t)
	example := regexp.MustCompile("`([A-Za-z.]+)`")
	rows := 0
	for line := range strings.Lines(chapter) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[3], "`") {
			continue
		}
		rows++
		for _, match := range example.FindAllStringSubmatch(cells[3], -1) {
			name := match[1][strings.LastIndex(match[1], ".")+1:]
			if !all[name] {
				t.Errorf("the row of %q names %s, which the code does not declare: name a function that exists", strings.TrimSpace(cells[1]), match[1])
			}
		}
	}
	if rows == 0 {
		t.Error("the table of verbs in docs/design.md has no example")
	}
}
