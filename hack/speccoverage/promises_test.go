package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/hack/cases"
)

// span matches one case number, or the first and last of a range such as SEC-N1 to SEC-N9.
var span = regexp.MustCompile(`\b(` + cases.NumberPattern + `)(?: to (` + cases.NumberPattern + `))?`)

// The promises of docs/security.md are tested. Each row of its tables of promises names cases. Each of these is in the specification, and a
// test or benchmark has its number in its name.
func TestPromisesAreTested(t *testing.T) {
	specified, tests := map[string]bool{}, testedNumbers(t)
	pages, err := readPages("../../docs/behaviour")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		for _, number := range p.cases {
			specified[number] = true
		}
	}
	const page = "../../docs/security.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	promises := false
	for line := range strings.Lines(string(text)) {
		promises = strings.HasPrefix(line, "| promise |") || promises && strings.HasPrefix(line, "|")
		spans := span.FindAllStringSubmatch(line, -1)
		if promises && len(spans) == 0 && !strings.HasPrefix(line, "| promise |") && !strings.HasPrefix(line, "|---") {
			t.Errorf("%s: no case shows that %s", page, line)
		}
		for _, s := range spans {
			for _, number := range numbersBetween(s[1], s[2]) {
				if !specified[number] || !tests[number] {
					t.Errorf("%s: %s: in the specification %t, in a test %t", page, number, specified[number], tests[number])
				}
			}
		}
	}
}

// numbersBetween returns the numbers from first to last, or only first if last is empty.
func numbersBetween(first, last string) []string {
	if last == "" {
		return []string{first}
	}
	letters := strings.TrimRight(first, "0123456789")
	from, _ := strconv.Atoi(first[len(letters):])
	to, _ := strconv.Atoi(last[len(letters):])
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf("%s%d", letters, n))
	}
	return all
}

// testedNumbers returns the case numbers that the sources of tests and benchmarks name.
func testedNumbers(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if path == "../../.dev" { // other tests make and remove folders there
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "../../test/bench") || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, n := range cases.Number.FindAllString(string(text), -1) {
			all[n] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
