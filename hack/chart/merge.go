package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// merge has the lines of an object's manifest in all its variants.
type merge []line

// line is a line of a manifest. It is in those variants in which all its conditions are true.
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

// add returns m with one more variant, to. m has the variant from already. Where the two differ, lines depend on the layer's condition.
func (m merge) add(from, to string, l layer) (merge, error) {
	var places []int // the indices in m of the lines of from
	var active []string
	for i, line := range m {
		if line.holds(l.given) {
			places, active = append(places, i), append(active, line.text)
		}
	}
	if !slices.Equal(active, lines(from)) {
		return nil, errors.New("an earlier layer changes the same lines: two layers must not change one line")
	}
	place := append(places, len(m))
	out := slices.Clone(m)
	codes := difflib.NewMatcher(active, lines(to)).GetOpCodes()
	slices.Reverse(codes) // from the last one, so that an insertion moves no place that is still to be used
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

// holds reports whether the line is in the variant in which the given conditions are true, and all others false.
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

// under returns m with all lines dependent on one more condition.
func (m merge) under(condition string) merge {
	var out merge
	for _, l := range m {
		out = append(out, line{text: l.text, when: append([]string{condition}, l.when...)})
	}
	return out
}

// A value that is a Helm expression loses its quotes. A list item that is a Helm expression also loses its dash, and an entry whose key is
// more its key.
var (
	quotedValue = regexp.MustCompile(`^(.*: )'(\{\{.*\}\})'$`)
	quotedItem  = regexp.MustCompile(`^ *(?:-|more:|- more:) '?(\{\{-.*\}\})'?$`)
)

// template returns the text of the chart's template. Lines that follow each other and have the same conditions share one block.
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
