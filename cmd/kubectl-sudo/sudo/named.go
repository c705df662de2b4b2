package sudo

import (
	"slices"
	"strings"
)

// aboutObjects are the commands of kubectl that name a kind and an object right after COMMAND, aboutTrees those of
// kubectl warren that name a namespace there.
var (
	aboutObjects = []string{"get", "describe", "edit", "label", "annotate", "patch", "wait", "delete"}
	aboutTrees   = []string{"tree", "graph", "describe"}
)

// namespaceIn returns the namespace that a command line is about, as in "get ns pay-web", "label ns/pay-web a=b" and
// "warren tree payments"; "" for every other.
func namespaceIn(words []string) string {
	var name string
	switch {
	case len(words) < 2:
		return ""
	case words[0] == "warren" && slices.Contains(aboutTrees, words[1]) && len(words) > 2:
		name = words[2]
	case slices.Contains(aboutObjects, words[0]):
		kind, object, both := strings.Cut(strings.ToLower(words[1]), "/")
		if kind != "ns" && kind != "namespace" && kind != "namespaces" {
			return ""
		}
		if name = object; !both && len(words) > 2 {
			name = words[2]
		}
	}
	if strings.HasPrefix(name, "-") {
		return ""
	}
	return name
}

// tenantIn returns the value of --tenant of a command of kubectl warren; "" if there is none.
func tenantIn(words []string) string {
	if words[0] != "warren" {
		return ""
	}
	for i, word := range words[1:] {
		value, given := strings.CutPrefix(word, "--tenant=")
		switch {
		case word == "--":
			return ""
		case given:
			return value
		case word == "--tenant" && i+2 < len(words):
			return words[i+2]
		}
	}
	return ""
}
