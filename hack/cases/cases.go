// Package cases finds the cases of the specification in the sources of tests. The name of a test bears the number of its case, and the
// sentence that says what happens: It("SUB-D4 deletes …"), t.Run("PROP-P1 writes …").
package cases

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// NumberPattern matches the number of a case.
const NumberPattern = `[A-Z]{3,5}-[A-Z]{0,3}[0-9]{1,3}[a-z]?\b`

var (
	// Number finds numbers of cases in a text.
	Number = regexp.MustCompile(`\b` + NumberPattern)

	// head matches the numbers to which the sentence after them belongs.
	head = regexp.MustCompile(`\b` + NumberPattern + `(?:[ ,]+` + NumberPattern + `)*:?`)

	parts = regexp.MustCompile(`^([A-Z]+-[A-Z]*)([0-9]+)`)
	verb  = regexp.MustCompile(`%[-+# 0-9.]*[a-z]`)
)

// Case is what the name of one test says about one case. If a name has several numbers in a row, its sentence belongs to each.
type Case struct {
	Number string
	// Sentence is empty if the name has nothing but numbers. It ends at the colon after which the runs of a test differ.
	Sentence string
	// File is the test's, with slashes, relative to the root.
	File string
}

// Split returns the letters of a number, such as SUB-D, and its count in them.
func Split(number string) (letters string, count int) {
	if found := parts.FindStringSubmatch(number); found != nil {
		letters = found[1]
		count, _ = strconv.Atoi(found[2])
	}
	return letters, count
}

// Find returns the cases that the tests and benchmarks below root bear in their names: by number, then by file, then as they are written.
func Find(root string) ([]Case, error) {
	var found []Case
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, path)
		file = filepath.ToSlash(file)
		if entry.IsDir() && file != "." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(file, ".go") || !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/") {
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading the tests: %w", err)
		}
		found = append(found, ofFile(source, file)...)
		return nil
	})
	slices.SortStableFunc(found, func(a, b Case) int {
		lettersA, countA := Split(a.Number)
		lettersB, countB := Split(b.Number)
		return cmp.Or(cmp.Compare(lettersA, lettersB), cmp.Compare(countA, countB), cmp.Compare(a.Number, b.Number), cmp.Compare(a.File, b.File))
	})
	return slices.Compact(found), err
}

func ofFile(source *ast.File, file string) (found []Case) {
	add := func(name string) {
		heads := head.FindAllStringIndex(name, -1)
		for i, h := range heads {
			end := len(name)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			sentence := sentenceOf(name[h[1]:end])
			for _, number := range Number.FindAllString(name[h[0]:h[1]], -1) {
				found = append(found, Case{number, sentence, file})
			}
		}
	}
	ast.Inspect(source, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			if isTest(n) {
				add(textOf(n.Args[0]))
			}
		case *ast.KeyValueExpr:
			// The key of a table of tests, or its field name.
			if key, isField := n.Key.(*ast.Ident); !isField {
				add(withValue(textOf(n.Key), n.Value))
			} else if key.Name == "name" {
				add(textOf(n.Value))
			}
		}
		return true
	})
	return found
}

// sentenceOf returns a sentence without what only a run knows: the end after a colon, or "…" alone.
func sentenceOf(text string) string {
	if known, _, isCut := strings.Cut(text, "…"); isCut {
		if colon := strings.LastIndex(known, ":"); colon >= 0 {
			text = known[:colon]
		}
	}
	return strings.Trim(text, " …;,")
}

// withValue returns the key of a table. If it has nothing but numbers, the sentence is its value.
func withValue(key string, value ast.Expr) string {
	if strings.TrimSpace(head.ReplaceAllString(key, "")) != "" {
		return key
	}
	return key + " " + textOf(value)
}

// isTest reports whether the first argument of a call is the name of a test: of Ginkgo's functions, of t.Run, and of helpers that get the
// test as a function.
func isTest(call *ast.CallExpr) bool {
	if len(call.Args) < 2 {
		return false
	}
	name := ""
	switch function := call.Fun.(type) {
	case *ast.Ident:
		name = function.Name
	case *ast.SelectorExpr:
		name = function.Sel.Name
	}
	switch name {
	case "It", "Specify", "Entry", "Run", "Describe", "DescribeTable", "Context", "When":
		return true
	case "By":
		return false
	}
	return slices.ContainsFunc(call.Args, func(argument ast.Expr) bool {
		_, isFunction := argument.(*ast.FuncLit)
		return isFunction
	})
}

// textOf returns a text as far as the source has it; "…" stands for each part that only the run knows.
func textOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return textOf(e.X) + textOf(e.Y)
		}
	case *ast.CallExpr:
		if function, ok := e.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(function.Sel.Name, "Sprint") && len(e.Args) > 0 {
			return verb.ReplaceAllString(textOf(e.Args[0]), "…") + "…"
		}
	}
	return "…"
}
