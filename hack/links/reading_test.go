package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const longestSentence = 25 // words

var (
	listItem    = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	sentenceEnd = regexp.MustCompile(`[.!?:][)*]*(\s+|$)`)
	cellItem    = regexp.MustCompile(`[|;]`)
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	word        = regexp.MustCompile(`[A-Za-z0-9'’-]+`)
	caseNumber  = regexp.MustCompile(`\b(SUB|PROP|HIER|ACC|SEC|DIST|BILL|INF|MIG|FLT|QUOTA)-[A-Z]*[0-9]+\b`)
)

// TestGuidesReadEasily checks the README, the concepts and the guides: sentences are short, and no case of the specification is cited.
func TestGuidesReadEasily(t *testing.T) {
	guides, err := filepath.Glob(filepath.Join(repository, "docs", "guides", "*.md"))
	if err != nil || len(guides) < 20 {
		t.Fatalf("found %d guides (%v)", len(guides), err)
	}
	for _, page := range append(guides, filepath.Join(repository, "README.md"), filepath.Join(repository, "docs", "concepts.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		checkOutline(t, page, string(text))
		if number := caseNumber.FindString(string(text)); number != "" {
			t.Errorf("%s cites case %s: the specification has the cases", page, number)
		}
		checkSentences(t, page, string(text))
	}
}

// TestSpecificationReadsEasily checks that the sentences of docs/behaviour are short.
func TestSpecificationReadsEasily(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "behaviour", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("found %d pages of the specification (%v)", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		checkSentences(t, page, string(text))
	}
}

func checkSentences(t *testing.T, page, text string) {
	t.Helper()
	for _, sentence := range sentencesOf(text) {
		if n := len(word.FindAllString(sentence, -1)); n > longestSentence {
			t.Errorf("%s: a sentence has %d words, more than %d: %s", page, n, longestSentence, sentence)
		}
	}
}

// checkOutline checks that a guide first states who it is for and what its reader reaches. It must also have a table or a section about
// what can go wrong.
func checkOutline(t *testing.T, page, text string) {
	t.Helper()
	if filepath.Base(filepath.Dir(page)) != "guides" || filepath.Base(page) == "troubleshooting.md" {
		return
	}
	_, body, _ := strings.Cut(text, "\n\n")
	opening, _, _ := strings.Cut(body, "\n\n")
	if !strings.HasPrefix(opening, "This guide is for ") && !strings.HasPrefix(opening, "This page is for ") ||
		!strings.Contains(opening, "At the end ") {
		t.Errorf("%s does not begin with its reader and what is reached at the end: %s", page, opening)
	}
	if !strings.Contains(text, "\n## What can go wrong") {
		t.Errorf("%s has no section about what can go wrong", page)
	}
}

// sentencesOf returns the sentences in the paragraphs, list items and table cells of a page, outside of code blocks. A piece of code within
// a sentence counts as one word. A colon ends a sentence, too. In a table, so does a semicolon, which separates steps and results.
func sentencesOf(text string) []string {
	var blocks []string
	paragraph := ""
	for _, line := range proseLines(text) {
		table, title := strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#")
		if table || title || listItem.MatchString(line) || strings.TrimSpace(line) == "" {
			blocks, paragraph = append(blocks, paragraph), ""
		}
		if table || title {
			blocks = append(blocks, cellItem.Split(line, -1)...)
			continue
		}
		paragraph += " " + listItem.ReplaceAllString(line, "")
	}
	var sentences []string
	for _, block := range append(blocks, paragraph) {
		block = linkTarget.ReplaceAllString(codeSpan.ReplaceAllString(block, "code"), "]")
		sentences = append(sentences, sentenceEnd.Split(block, -1)...)
	}
	return sentences
}

func TestSentencesOf(t *testing.T) {
	got := 0
	for _, sentence := range sentencesOf("# Title\n\nOne `a b c` two. Three\nfour.\n\n| x y | z |\n- five\n```\nno\n```\n") {
		got += len(word.FindAllString(sentence, -1))
	}
	if want := 1 + 3 + 2 + 3 + 1; got != want {
		t.Errorf("sentencesOf returns %d words, expected %d", got, want)
	}
}
