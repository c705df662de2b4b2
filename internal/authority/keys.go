package authority

import (
	"fmt"
	"slices"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Keys are the label or annotation keys that a HierarchyConfiguration propagates and overrides.
type Keys struct{ Propagated, Overridden []string }

// KeyRules determine whose consent a key needs. The functions must not be nil.
type KeyRules struct {
	// Inherits reports whether the configuration makes every namespace inherit a key. Undelegated reports whether only
	// a cluster admin may propagate or override a key.
	Inherits, Undelegated func(key string) bool
	// Declares reports whether the HierarchyConfiguration of a namespace propagates a key.
	Declares func(namespace, key string) bool
}

// Added returns the keys that are in now.Propagated and were not in old.Propagated.
func Added(old, now Keys) []string { return addedKeys(old.Propagated, now.Propagated) }

// Propagating returns the questions for the keys that a namespace newly propagates. Only an undelegated key needs one.
func (r KeyRules) Propagating(old, now Keys) []Question {
	var questions []Question
	for _, key := range addedKeys(old.Propagated, now.Propagated) {
		if r.Undelegated(key) {
			questions = append(questions, clusterQuestion(key))
		}
	}
	return questions
}

// Overriding returns the questions for the keys that a namespace newly overrides. If the namespace moves, it returns
// those for all keys that the namespace overrides, because it then has other ancestors. above are its ancestors after
// the change, the root first.
func (r KeyRules) Overriding(old, now Keys, above []string, moves bool) []Question {
	keys := addedKeys(old.Overridden, now.Overridden)
	if moves {
		keys = now.Overridden
	}
	var questions []Question
	for _, key := range keys {
		declaring := slices.IndexFunc(above, func(name string) bool { return r.Declares(name, key) })
		switch {
		case r.Inherits(key) || r.Undelegated(key):
			questions = append(questions, clusterQuestion(key))
		case declaring >= 0:
			role := fmt.Sprintf("it propagates %q", key)
			questions = append(questions, Question{Right: Administer, Namespace: above[declaring], Role: role})
		case len(above) > 0:
			questions = append(questions, Question{Right: Administer, Namespace: above[0], Role: fmt.Sprintf("root of the tree, for %q", key)})
		}
	}
	return uniqueQuestions(questions)
}

// OverridingBelow returns the questions for the keys that the namespaces below one that moves override: for those that its
// new ancestors propagate. above are these ancestors, the root first.
func (r KeyRules) OverridingBelow(overridden, above []string) []Question {
	declared := slices.DeleteFunc(slices.Clone(overridden), func(key string) bool {
		return !slices.ContainsFunc(above, func(name string) bool { return r.Declares(name, key) })
	})
	return r.Overriding(Keys{}, Keys{Overridden: declared}, above, true)
}

func clusterQuestion(key string) Question {
	return Question{Right: UpdateNamespaces, Role: fmt.Sprintf("%q is not delegated", key)}
}

// Requiring returns the question for the right to create the children that a namespace newly requires; none where it
// requires no new ones.
func Requiring(namespace string, old, now []string) []Question {
	if len(addedKeys(old, now)) == 0 {
		return nil
	}
	return []Question{{Right: CreateSubNamespaces, Namespace: namespace}}
}

func addedKeys(old, now []string) []string {
	return slices.DeleteFunc(slices.Clone(now), func(key string) bool { return slices.Contains(old, key) })
}

// Above returns the ancestors of name by the labels parent, the root first.
func Above(s *forest.Snapshot, name string) []string {
	chain := (move{s: s}).namesInChain(name)
	slices.Reverse(chain)
	return chain[:max(len(chain)-1, 0)]
}
