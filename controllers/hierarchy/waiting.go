package hierarchy

import (
	"iter"
	"slices"
	"sync"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// waiting are the names of the namespaces whose HierarchyConfigurations ask for what can't be given yet.
type waiting struct{ names sync.Map }

func (w *waiting) add(name string)    { w.names.Store(name, true) }
func (w *waiting) remove(name string) { w.names.Delete(name) }

// concernedBy lists those of them to which a change of the forest may make a difference. Another tenant's changes make none: else
// one tenant with many unlawful requests would have all of them judged again whenever anybody changes anything.
func (w *waiting) concernedBy(c view.Change) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Old == c.New {
			return
		}
		changed := namesAndRoots(c)
		w.names.Range(func(key, _ any) bool {
			name := key.(string)
			return !mayConcern(c.New, name, changed) || yield(name)
		})
	}
}

// namesAndRoots are the names that a change is about, and the roots of the trees that they stand in, before and after it.
func namesAndRoots(c view.Change) map[string]bool {
	changed := map[string]bool{}
	for _, name := range c.Namespaces {
		changed[name] = true
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			if place := s.Place(name); place.InTree() {
				changed[place.Path[0]] = true
			}
			for _, sub := range s.Subs(name) {
				changed[sub.Name] = true
			}
		}
	}
	return changed
}

// mayConcern says whether what the HierarchyConfiguration of the namespace called name asks for may be judged otherwise after a change of
// these names. Everything may concern a namespace that is in no tree, or that wants to go below one that is in none: the path of such a
// one has no end by which it could be told.
func mayConcern(s *forest.Snapshot, name string, changed map[string]bool) bool {
	place, h := s.Place(name), s.Hierarchy(name)
	if h == nil || !place.InTree() || changed[name] || changed[place.Path[0]] {
		return true
	}
	if slices.ContainsFunc(h.Required, func(child string) bool { return changed[child] }) {
		return true
	}
	if h.Parent == nil || *h.Parent == "" {
		return false
	}
	parent := *h.Parent
	switch target := s.Place(parent); {
	case changed[parent]:
		return true
	case s.Namespace(parent) == nil:
		return false
	default:
		return !target.InTree() || changed[target.Path[0]]
	}
}
