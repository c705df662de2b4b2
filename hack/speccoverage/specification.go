package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/warren-tenancy/warren/hack/cases"
)

const (
	// elsewhere begins the lines that list the cases which another target than `make test` shows.
	elsewhere = "Shown by `make "

	// longRun, in the row of a case, means that `make test` does less than the row demands. So reports of `make test` do not count there.
	longRun = "`make test-long`"
)

var (
	// A case is a row of a table whose first cell begins with its number.
	caseRow = regexp.MustCompile(`^\| *(` + cases.NumberPattern + `)`)

	// Rows under these headings are numbered too, but state facts and plans, not what a test must show.
	notCases = regexp.MustCompile(`Facts|Verified|Invariants|faults enter|Crash points|How much runs|Budgets`)
)

type page struct {
	name  string
	cases []string // sorted, each once
	long  []string // those for which only reports of `make test-long` count
}

// readElsewhere returns the cases that a page lists as shown by another target.
func readElsewhere(file string) (sets.Set[string], error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	listed := sets.New[string]()
	for line := range strings.Lines(string(text)) {
		if _, after, found := strings.Cut(line, elsewhere); found {
			listed.Insert(cases.Number.FindAllString(after, -1)...)
		}
	}
	return listed, nil
}

// readPages reads the pages of a specification that have cases, in the order of their names.
func readPages(dir string) ([]page, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, fmt.Errorf("folder of the specification %s: %w", dir, err)
	}
	var pages []page
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if p := pageOf(strings.TrimSuffix(filepath.Base(file), ".md"), string(text)); len(p.cases) > 0 {
			pages = append(pages, p)
		}
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("no page with cases in %s", dir)
	}
	return pages, nil
}

func pageOf(name, text string) page {
	p := page{name: name}
	skip := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			skip = notCases.MatchString(line)
			continue
		}
		if row := caseRow.FindStringSubmatch(line); row != nil && !skip {
			p.cases = append(p.cases, row[1])
			if strings.Contains(line, longRun) {
				p.long = append(p.long, row[1])
			}
		}
	}
	slices.Sort(p.cases)
	p.cases = slices.Compact(p.cases)
	return p
}
