package forest

import "slices"

// Concerned holds names, from before a change and after it: those of the changed namespaces, of the SubNamespaces in
// these, and of their ancestors up to the roots.
type Concerned map[string]bool

// ConcernedBy returns the names that a change of the namespaces called names concerns. old is the forest before the
// change, and s the forest after it. The ancestors are found by the labels parent alone, also for a halted namespace.
// This matters because a halted namespace counts in its tree, and a namespace that waits for a missing parent keeps the
// parent's name from others.
func ConcernedBy(s, old *Snapshot, names []string) Concerned {
	concerned := Concerned{}
	for _, at := range []*Snapshot{old, s} {
		climbed := map[string]bool{}
		for _, name := range names {
			concerned[name] = true
			if root := at.RootOf(name); root != "" {
				concerned[root] = true // it counts there, wherever its labels lead
			}
			for _, sub := range at.Subs(name) {
				concerned[sub.Name] = true
			}
			for n := at.Namespace(name); n != nil && n.Parent() != "" && !climbed[n.Name]; n = at.Namespace(n.Parent()) {
				climbed[n.Name], concerned[n.Parent()] = true, true
			}
		}
	}
	return concerned
}

// RequestMayChange reports whether the refused request of the HierarchyConfiguration in the namespace called name may
// be judged otherwise after a change that concerns these names. The answer is always true where that namespace is in no
// tree. It is also true where the parent that is asked for exists and is in no tree.
func RequestMayChange(s *Snapshot, name string, concerned Concerned) bool {
	place, h := s.Place(name), s.Hierarchy(name)
	if h == nil || !place.InTree() || concerned[name] || concerned[place.Path[0]] {
		return true
	}
	if slices.ContainsFunc(h.Required, func(child string) bool { return concerned[child] }) {
		return true
	}
	if h.Parent == nil || *h.Parent == "" {
		return false
	}
	parent := *h.Parent
	switch target := s.Place(parent); {
	case concerned[parent]:
		return true
	// If it had just been created, it would be among the concerned names.
	case s.Namespace(parent) == nil:
		return false
	// Without a sound path to a root, concerned can't show whether the change matters.
	default:
		return !target.InTree() || concerned[target.Path[0]]
	}
}
