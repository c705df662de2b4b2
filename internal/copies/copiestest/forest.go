// Package copiestest makes the forests that the tests of internal/copies and internal/copyengine need.
package copiestest

import (
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Planted returns a forest with one namespace for each text. A text is a name and its place: "acme root", "a in acme",
// "tmpl template", or "solo" for a namespace in no tree. "of TEMPLATE", labels "KEY=VALUE" and "terminating" may
// follow.
func Planted(namespaces ...string) *forest.Snapshot {
	s := forest.New(forest.Rules{})
	for _, text := range namespaces {
		words := strings.Fields(text)
		n := &forest.Namespace{Name: words[0], UID: "uid-" + words[0], Labels: map[string]string{"kubernetes.io/metadata.name": words[0]}}
		for i, word := range words[1:] {
			key, value, pair := strings.Cut(word, "=")
			switch {
			case word == "root" || word == "template":
				n.Labels[v1alpha1.LabelType] = word
			case word == "terminating":
				n.Terminating = true
			case pair:
				n.Labels[key] = value
			case word == "in":
				n.Labels[v1alpha1.LabelParent] = words[i+2]
			case word == "of":
				n.Labels[v1alpha1.LabelTemplate] = words[i+2]
			}
		}
		s = s.WithNamespace(n)
	}
	return s
}

// Acme is the fixture of the specification.
func Acme(more ...string) *forest.Snapshot {
	return Planted(append([]string{"acme root", "a in acme", "a1 in a", "b in acme", "zeta root", "z in zeta", "tmpl template", "solo"},
		more...)...)
}

// Limited returns Acme with these limits for every tree; a negative number means no limit. Below acme are three
// namespaces.
func Limited(copies int32, bytes int64) *forest.Snapshot {
	var limits v1alpha1.Limits
	if copies >= 0 {
		limits.Copies = &copies
	}
	if bytes >= 0 {
		limits.Bytes = &bytes
	}
	return Acme().WithRules(forest.Rules{Limits: limits})
}
