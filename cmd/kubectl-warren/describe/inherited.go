package describe

import (
	"cmp"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Inherited is a label or an annotation that the operator wrote on the namespace.
type Inherited struct {
	// Kind is label or annotation.
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Value string `json:"value"`
	// From is where the value was set: a namespace above, a template, the SubNamespace of this namespace or of one above, or
	// the LNamespace.
	From string `json:"from"`
}

// key is a label, or an annotation, of a namespace.
type key struct {
	name       string
	annotation bool
}

// keysOf reads the list of keys that the operator wrote on a namespace.
func keysOf(n *forest.Namespace) []key {
	var keys []key
	for text := range strings.SplitSeq(n.Annotations[v1alpha1.AnnotationInherited], ",") {
		name, annotation := strings.CutPrefix(text, "@")
		if name != "" {
			keys = append(keys, key{name, annotation})
		}
	}
	return keys
}

func (k key) findIn(n *forest.Namespace) (value string, there bool) {
	if k.annotation {
		value, there = n.Annotations[k.name]
	} else {
		value, there = n.Labels[k.name]
	}
	return value, there
}

func inheritedKeys(s *forest.Snapshot, n *forest.Namespace) []Inherited {
	all := []Inherited{}
	for _, k := range keysOf(n) {
		value, there := k.findIn(n)
		if !there {
			continue
		}
		kind := "label"
		if k.annotation {
			kind = "annotation"
		}
		all = append(all, Inherited{kind, k.name, value, findOrigin(s, n, k, value)})
	}
	return all
}

// findOrigin returns where a value was set. It goes up from n while the operator wrote the key on the namespace above.
// If a bound namespace's parent has another value or none, its SubNamespace has set the value. If the namespace above
// can't be read, findOrigin returns its name: the value was set there or further up. What neither a namespace nor a
// template has set on the root of a tenant, spec.billing of the LNamespace has.
func findOrigin(s *forest.Snapshot, n *forest.Namespace, k key, value string) string {
	seen := map[string]bool{}
	for !seen[n.Name] {
		seen[n.Name] = true
		name := cmp.Or(n.Parent(), n.Template())
		above := s.Namespace(name)
		if above == nil && name != "" {
			return name
		}
		switch {
		case n.TenantUID() != "" && !hasValue(above, k, value):
			return "LNamespace " + n.Name
		case above == nil:
			return ""
		case n.BoundTo(name) && !hasValue(above, k, value):
			return "SubNamespace " + name + "/" + n.Name
		case !isWrittenByOperator(above, k):
			return name
		}
		n = above
	}
	return n.Name
}

func hasValue(n *forest.Namespace, k key, value string) bool {
	if n == nil {
		return false
	}
	given, there := k.findIn(n)
	return there && given == value
}

// isWrittenByOperator reports whether the operator wrote the key on the namespace.
func isWrittenByOperator(n *forest.Namespace, k key) bool {
	return slices.Contains(keysOf(n), k)
}
