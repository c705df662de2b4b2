package main

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
)

type link struct {
	line   int
	target string
}

var (
	inlineLink = regexp.MustCompile(`\]\(([^()\s]+)(?: "[^"]*")?\)`)
	reference  = regexp.MustCompile(`^\[[^\]]+\]: +(\S+)`)
	codeSpan   = regexp.MustCompile("``[^`].*?``|`[^`]*`")
	heading    = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
)

// linksOf returns the links of a Markdown page, except those in code.
func linksOf(text string) []link {
	var links []link
	for n, line := range proseLines(text) {
		line = codeSpan.ReplaceAllString(line, "")
		for _, match := range append(inlineLink.FindAllStringSubmatch(line, -1), reference.FindAllStringSubmatch(line, -1)...) {
			links = append(links, link{n, match[1]})
		}
	}
	return links
}

// anchorsOf returns the anchors of a page's headings as GitHub makes them: lower case, spaces as hyphens, punctuation
// dropped. GitHub adds a number to the anchors of headings with the same text; anchorsOf does not.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, line := range proseLines(text) {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		anchors[strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])] = true
	}
	return anchors
}

// proseLines yields the lines of a page outside fenced code, with their numbers from 1.
func proseLines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		n, fenced := 0, false
		for line := range strings.Lines(text) {
			n++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			if !fenced && !yield(n, strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}
