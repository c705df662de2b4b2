package authority

import (
	"fmt"
	"slices"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Keys are the label or annotation keys that a HierarchyConfiguration propagates and overrides.
type Keys struct{ Propagated, Overridden []string }

// KeyRules say who must agree to a key. The functions must not be nil.
type KeyRules struct {
	// Inherits says which keys flow everywhere by the configuration; Undelegated, which only a cluster admin delegates.
	Inherits, Undelegated func(key string) bool
	// Declares says whether the HierarchyConfiguration of a namespace propagates a key.
	Declares func(namespace, key string) bool
}

// Added are the keys that are newly propagated.
func Added(old, now Keys) []string { return added(old.Propagated, now.Propagated) }

// Propagating asks for the keys that are newly propagated from a namespace.
func (r KeyRules) Propagating(old, now Keys) []Question {
	var questions []Question
	for _, key := range added(old.Propagated, now.Propagated) {
		if r.Undelegated(key) {
			questions = append(questions, onlyCluster(key))
		}
	}
	return questions
}

// Overriding asks for the keys that a namespace newly overrides; for all of them where it moves, since others stand
// above it then. above are the namespaces above it after the change, its root first.
func (r KeyRules) Overriding(old, now Keys, above []string, moves bool) []Question {
	keys := added(old.Overridden, now.Overridden)
	if moves {
		keys = now.Overridden
	}
	var questions []Question
	for _, key := range keys {
		declaring := slices.IndexFunc(above, func(name string) bool { return r.Declares(name, key) })
		switch {
		case r.Inherits(key) || r.Undelegated(key):
			questions = append(questions, onlyCluster(key))
		case declaring >= 0:
			role := fmt.Sprintf("it propagates %q", key)
			questions = append(questions, Question{Right: Administer, Namespace: above[declaring], Role: role})
		case len(above) > 0:
			questions = append(questions, Question{Right: Administer, Namespace: above[0], Role: fmt.Sprintf("root of the tree, for %q", key)})
		}
	}
	return unique(questions)
}

func onlyCluster(key string) Question {
	return Question{Right: UpdateNamespaces, Role: fmt.Sprintf("%q is not delegated", key)}
}

// Requiring asks for the right to make the children that a namespace newly requires.
func Requiring(namespace string, old, now []string) []Question {
	if len(added(old, now)) == 0 {
		return nil
	}
	return []Question{{Right: CreateSubNamespaces, Namespace: namespace}}
}

func added(old, now []string) []string {
	return slices.DeleteFunc(slices.Clone(now), func(key string) bool { return slices.Contains(old, key) })
}

// Above are the namespaces above name as its labels say, its root first.
func Above(s *forest.Snapshot, name string) []string {
	chain := (move{s: s}).chain(name)
	slices.Reverse(chain)
	return chain[:max(len(chain)-1, 0)]
}
