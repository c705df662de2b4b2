package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const numberPattern = `[A-Z]{3,4}-[A-Z]{0,3}[0-9]{1,3}[a-z]?\b`

var (
	// A case is a row of a table whose first cell begins with its number.
	caseRow = regexp.MustCompile(`^\| *(` + numberPattern + `)`)

	// Rows under these headings are numbered too, but say what is so, not what a test must show.
	notCases = regexp.MustCompile(`Facts|Verified|Invariants|faults enter|Crash points|How much runs|Budgets`)
)

type page struct {
	name  string
	cases []string // sorted, each once
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
		if cases := casesOf(string(text)); len(cases) > 0 {
			pages = append(pages, page{strings.TrimSuffix(filepath.Base(file), ".md"), cases})
		}
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("no page with cases in %s", dir)
	}
	return pages, nil
}

func casesOf(text string) []string {
	var cases []string
	skip := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			skip = notCases.MatchString(line)
			continue
		}
		if row := caseRow.FindStringSubmatch(line); row != nil && !skip {
			cases = append(cases, row[1])
		}
	}
	slices.Sort(cases)
	return slices.Compact(cases)
}
