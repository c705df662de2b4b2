package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence     = regexp.MustCompile("^\\s*```(.*)$")
	notRun    = regexp.MustCompile(`^\s*<!-- not run: .+ -->$`)
	numbering = regexp.MustCompile(`^#{2,4} ([0-9]+(?:\.[0-9]+)*)\.? `)
)

// TestShellBlocksAreRunOrSayWhyNot checks the README, the concepts and the guides. Each block of commands either has language console, so
// that test/integration/guides runs it, or the line before it gives the reason why it is not run.
func TestShellBlocksAreRunOrSayWhyNot(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "guides", "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("found %d guides (%v)", len(pages), err)
	}
	played, explained := 0, 0
	for _, page := range append(pages, filepath.Join(repository, "README.md"), filepath.Join(repository, "docs", "concepts.md")) {
		for _, block := range blocksOf(t, page) {
			switch {
			case block.language == "console" && block.reason:
				t.Errorf("%s:%d: the block has language console, so it is run, and a comment that says it is not: write sh", page, block.line)
			case block.language == "console":
				played++
			case block.language != "" && block.language != "sh":
			case block.reason:
				explained++
			default:
				t.Errorf("%s:%d: the block is neither of language console nor below a comment <!-- not run: REASON -->", page, block.line)
			}
		}
	}
	t.Logf("%d blocks are run, %d have a reason why not", played, explained)
}

// codeBlock is one fenced block of a page.
type codeBlock struct {
	language string
	line     int
	reason   bool // whether the line before the block gives a reason why it is not run
}

func blocksOf(t *testing.T, page string) []codeBlock {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []codeBlock
	inside, before := false, ""
	for n, line := range strings.Split(string(text), "\n") {
		if opening := fence.FindStringSubmatch(line); opening != nil {
			if !inside {
				blocks = append(blocks, codeBlock{opening[1], n + 1, notRun.MatchString(before)})
			}
			inside = !inside
		}
		before = line
	}
	return blocks
}

// TestSectionNumbersAreUnique checks that no page of the specification has two sections of one number: other pages cite them.
func TestSectionNumbersAreUnique(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "behaviour", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("found %d pages (%v)", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for n, line := range proseLines(string(text)) {
			found := numbering.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			if first := seen[found[1]]; first != 0 {
				t.Errorf("%s:%d: section %s is on line %d already", page, n, found[1], first)
			}
			seen[found[1]] = n
		}
	}
}
