// Behaviour writes the pages of docs/behaviour that follow from the tests. The name of a test is the sentence of its case. A template,
// docs/behaviour/PAGE.tmpl, has what no test says: title, introduction, headings. There, {{cases "SUB-D" "SUB-S1 to SUB-S9" "SUB-X4"}}
// stands for the table of the cases with these letters, in these ranges, and with these numbers.
//
//	go run ./hack/behaviour [DIR]
package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/warren-tenancy/warren/hack/cases"
)

const (
	specification   = "docs/behaviour"
	longestSentence = 30 // words
)

func main() {
	dir := specification
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := writePages(".", dir); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// writePages writes the page of each template below root to dir.
func writePages(root, dir string) error {
	files, err := filepath.Glob(filepath.Join(root, specification, "*.tmpl"))
	if err != nil {
		return err
	}
	tested, err := cases.Find(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		written, err := pageOf(name, string(text), tested)
		if err != nil {
			return fmt.Errorf("writing the page of %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, ".tmpl")+".md"), written, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pageOf returns the page of a template. Each case with a capability that the page has, such as SUB, must be on it, and only once.
func pageOf(name, text string, tested []cases.Case) ([]byte, error) {
	count, capabilities := map[string]int{}, map[string]bool{}
	table := func(groups ...string) (string, error) {
		rows := []string{"| case | what happens | test |", "|---|---|---|"}
		for _, group := range groups {
			chosen := map[string]bool{}
			for _, c := range tested {
				if isIn(group, c.Number) {
					chosen[c.Number] = true
				}
			}
			if len(chosen) == 0 {
				return "", fmt.Errorf("no test bears a number of %s", group)
			}
			for _, c := range tested {
				if chosen[c.Number] && c.Sentence != "" {
					rows = append(rows, rowOf(c))
				}
			}
			for number := range chosen {
				count[number]++
			}
			capability, _, _ := strings.Cut(group, "-")
			capabilities[capability] = true
		}
		return strings.Join(rows, "\n"), nil
	}
	page, err := template.New(name).Funcs(template.FuncMap{"cases": table}).Parse(text)
	if err != nil {
		return nil, err
	}
	written := bytes.NewBufferString("<!-- Written by `make docs` from " + name + " and from the names of the tests. DO NOT EDIT. -->\n")
	if err := page.Execute(written, nil); err != nil {
		return nil, err
	}
	return written.Bytes(), check(tested, count, capabilities)
}

// check returns an error that names a case which is not once on its page, or which no sentence, or a long one, describes.
func check(tested []cases.Case, count map[string]int, capabilities map[string]bool) error {
	for _, c := range tested {
		capability, _, _ := strings.Cut(c.Number, "-")
		described := func(other cases.Case) bool { return other.Number == c.Number && other.Sentence != "" }
		switch {
		case !capabilities[capability]:
		case count[c.Number] != 1:
			return fmt.Errorf("case %s of %s is in %d tables, not in one", c.Number, c.File, count[c.Number])
		case !slices.ContainsFunc(tested, described):
			return fmt.Errorf("no name of a test with %s, as in %s, says what happens", c.Number, c.File)
		case len(strings.Fields(c.Sentence)) > longestSentence:
			return fmt.Errorf("the sentence of %s in %s has more than %d words: %s", c.Number, c.File, longestSentence, c.Sentence)
		}
	}
	return nil
}

// isIn reports whether a group has a number: the group is the number, its letters, or a range with them.
func isIn(group, number string) bool {
	letters, n := cases.Split(number)
	if first, last, isRange := strings.Cut(group, " to "); isRange {
		lettersOf, from := cases.Split(first)
		_, to := cases.Split(last)
		return letters == lettersOf && from <= n && n <= to
	}
	return group == number || group == letters
}

func rowOf(c cases.Case) string {
	return fmt.Sprintf("| %s | %s | [%s](../../%s) |", c.Number, strings.ReplaceAll(c.Sentence, "|", `\|`), path.Base(c.File), c.File)
}
