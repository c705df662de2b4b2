package forest

import "slices"

// Concerned are the names that a change is about, and those above them up to the roots of their trees, before and after it.
type Concerned map[string]bool

// ConcernedBy are those of a change of these names between old and s. The way up goes by labels, whatever state they are in: what is
// halted counts in its tree, and what waits for a parent keeps the parent's name from others.
func (s *Snapshot) ConcernedBy(old *Snapshot, names []string) Concerned {
	concerned := Concerned{}
	for _, at := range []*Snapshot{old, s} {
		climbed := map[string]bool{}
		for _, name := range names {
			concerned[name] = true
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

// RequestMayChange says whether what the HierarchyConfiguration of the namespace called name asks for, and can't be given, may be judged
// otherwise after a change. Everything may concern a namespace that is in no tree, or that wants to go below one that is in none: the path
// of such a one has no end by which it could be told.
func (s *Snapshot) RequestMayChange(name string, concerned Concerned) bool {
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
	case s.Namespace(parent) == nil:
		return false
	default:
		return !target.InTree() || concerned[target.Path[0]]
	}
}
