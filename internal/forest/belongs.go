package forest

import (
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// BelongsTo says whether the namespace called name counts as part of the tree of root for the refusals of requests: the namespace
// is the root, its labels lead there, or its last sound path began there. Unlike InTree, BelongsTo counts a namespace that is
// halted, in a cycle or protected, because the users of the tree keep their rights in such a namespace.
func (s *Snapshot) BelongsTo(name, root string) bool {
	seen := map[string]bool{}
	for !seen[name] {
		if name == root {
			return true
		}
		seen[name] = true
		n := s.Namespace(name)
		if n == nil || n.Parent() == "" {
			return false
		}
		if n.FormerRoot() == root {
			return true
		}
		name = n.Parent()
	}
	return false
}

// StoodBelow reports whether the last sound path of the namespace called name led through the namespace called ancestor.
func (s *Snapshot) StoodBelow(name, ancestor string) bool {
	n := s.Namespace(name)
	return n != nil && slices.Contains(strings.Split(n.Annotations[v1alpha1.AnnotationAncestry], "/"), ancestor)
}
