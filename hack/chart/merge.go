package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// merge is an object in all its variants.
type merge []line

// line is a line of some variants: of those in which all its conditions hold.
type line struct {
	text string
	when []string
}

func mergeOf(text string) merge {
	var m merge
	for _, l := range lines(text) {
		m = append(m, line{text: l})
	}
	return m
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// add adds a variant: what makes to out of from, which m has already, holds under the condition of the layer.
func (m merge) add(from, to string, l layer) (merge, error) {
	var places []int // of the lines of from
	var active []string
	for i, line := range m {
		if line.holds(l.given) {
			places, active = append(places, i), append(active, line.text)
		}
	}
	if !slices.Equal(active, lines(from)) {
		return nil, errors.New("a former switch changes the same lines: the layers don't add up")
	}
	place := append(places, len(m))
	out := slices.Clone(m)
	codes := difflib.NewMatcher(active, lines(to)).GetOpCodes()
	slices.Reverse(codes) // so that places stay true
	for _, c := range codes {
		if c.Tag == 'e' {
			continue
		}
		for _, i := range place[c.I1:c.I2] {
			out[i].when = append(slices.Clone(out[i].when), "not ("+l.when+")")
		}
		var inserted merge
		for _, text := range lines(to)[c.J1:c.J2] {
			inserted = append(inserted, line{text: text, when: []string{l.when}})
		}
		out = slices.Insert(out, place[c.I2], inserted...)
	}
	return out, nil
}

// holds reports whether a line is there when these conditions are true, and all others false.
func (l line) holds(given []string) bool {
	for _, when := range l.when {
		if negated, ok := strings.CutPrefix(when, "not ("); ok {
			if slices.Contains(given, strings.TrimSuffix(negated, ")")) {
				return false
			}
		} else if !slices.Contains(given, when) {
			return false
		}
	}
	return true
}

// under has all lines depend on one more condition.
func (m merge) under(condition string) merge {
	var out merge
	for _, l := range m {
		out = append(out, line{text: l.text, when: append([]string{condition}, l.when...)})
	}
	return out
}

// A value that is a template loses its quotes, and a list item that is one its dash too.
var (
	quotedValue = regexp.MustCompile(`^(.*: )'(\{\{.*\}\})'$`)
	quotedItem  = regexp.MustCompile(`^ *- '(\{\{-.*\}\})'$`)
)

// template is the text of the template. Lines that follow each other and have the same conditions share one block.
func (m merge) template() []byte {
	var out strings.Builder
	var open []string
	for _, l := range append(m, line{}) {
		same := 0
		for same < min(len(open), len(l.when)) && open[same] == l.when[same] {
			same++
		}
		for range open[same:] {
			out.WriteString("{{- end }}\n")
		}
		for _, condition := range l.when[same:] {
			fmt.Fprintf(&out, "{{- if %s }}\n", condition)
		}
		open = l.when
		out.WriteString(quotedItem.ReplaceAllString(quotedValue.ReplaceAllString(l.text, "$1$2"), "$1") + "\n")
	}
	return []byte(strings.TrimSuffix(out.String(), "\n"))
}
