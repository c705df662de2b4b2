package forest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Sources lists the namespaces whose propagated objects a namespace gets, topmost first: the chain of templates, then
// the ancestors.
type Sources struct {
	Names []string
	// Unknown explains why everything that came from templates is frozen: a namespace of the chain is missing,
	// terminating, no template or in a cycle. Names then holds the ancestors alone.
	Unknown string
	chain   []string
	of      *Snapshot
}

// Has reports whether objects are propagated from namespace to this place.
func (p Sources) Has(namespace string) bool { return slices.Contains(p.Names, namespace) }

// Frozen reports whether a copy from namespace must stay as it is because it came, or may have come, from templates
// that can't be judged now.
func (p Sources) Frozen(namespace string) bool {
	if p.Unknown == "" || p.Has(namespace) {
		return false
	}
	n := p.of.Namespace(namespace)
	return slices.Contains(p.chain, namespace) || n == nil || n.Type() == v1alpha1.TypeTemplate
}

// Sources returns the namespaces from which objects are propagated to the namespace called name. ok is false where
// nothing may be written or removed: the namespace is halted, protected, terminating or gone, or the operator is about
// to release a namespace above it. A namespace that is not in the forest, or about to be released, has no sources, and
// ok is true: the operator removes what it wrote there.
func (s *Snapshot) Sources(name string) (sources Sources, ok bool) {
	n := s.Namespace(name)
	if n == nil || n.Terminating {
		return Sources{}, false
	}
	place := s.Place(name)
	if place.Halted() || s.rules.isProtected(n) {
		return Sources{}, false
	}
	// The operator is about to release a namespace on the path; plans may come before that, as when the operator
	// starts. The namespace itself has no sources, so its copies are removed. Below it, nothing is written or removed.
	if at := slices.IndexFunc(place.Path, func(on string) bool { return isAbandoned(s, s.Namespace(on)) }); at >= 0 {
		return Sources{}, place.Path[at] == name
	}
	top := n
	if place.InTree() {
		top = s.Namespace(place.Path[0])
		sources.Names = place.Path[:len(place.Path)-1]
	}
	if place.Kind == None {
		return sources, true
	}
	templates, unknown := s.templateChain(top)
	if unknown != "" {
		return Sources{Names: sources.Names, Unknown: unknown, chain: templates, of: s}, true
	}
	sources.Names = slices.Concat(templates, sources.Names)
	return sources, true
}

// templateChain returns the chain of templates that n references, outermost first, and why the chain can't be judged,
// or "". A chain that can't be judged holds the names as far as they are known.
func (s *Snapshot) templateChain(n *Namespace) (chain []string, unknown string) {
	for name := n.Template(); name != ""; {
		t := s.Namespace(name)
		switch {
		case slices.Contains(chain, name) || name == n.Name:
			unknown = "template " + name + " is in a cycle"
		case t == nil:
			unknown = "template " + name + " does not exist"
		case t.Terminating:
			unknown = "template " + name + " is being terminated"
		case s.KindOf(t) != Template:
			unknown = name + " is not a template namespace"
		}
		chain = append(chain, name)
		if unknown != "" {
			break
		}
		name = t.Template()
	}
	slices.Reverse(chain)
	return chain, unknown
}

// TemplateProblem explains why everything that came from templates is frozen in the namespace called name, or "".
func TemplateProblem(s *Snapshot, name string) string {
	sources, _ := s.Sources(name)
	return sources.Unknown
}

// Below yields every namespace below name by the labels parent and template, halted or not: all whose place,
// inheritance or copies may depend on name. Each is yielded once, even in a cycle, and name itself is not.
func (s *Snapshot) Below(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{name: true}
		for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
			for _, next := range slices.Concat(s.Children(queue[0]), s.Instances(queue[0])) {
				if seen[next] {
					continue
				}
				if !yield(next) {
					return
				}
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
}

// Subtree returns the namespaces below name by the label parent, parents before their children, halted or not.
func (s *Snapshot) Subtree(name string) []string {
	return s.walk(name, map[string]bool{name: true})
}

// Members returns the namespaces that count in the tree of root, apart from root itself, parents before their children:
// the Subtree of root, and all halted ones that still belong to the tree although their labels lead elsewhere, because a
// namespace between was deleted. Without these, the tree could use what its limits allow once more.
func (s *Snapshot) Members(root string) []string {
	seen := map[string]bool{root: true}
	members := s.walk(root, seen)
	cut := slices.DeleteFunc(listNames(s.standing, root), func(name string) bool { return seen[name] || s.RootOf(name) != root })
	slices.SortStableFunc(cut, func(a, b string) int { return cmp.Compare(s.formerDepth(a), s.formerDepth(b)) })
	for _, name := range cut {
		if !seen[name] {
			seen[name] = true
			members = append(append(members, name), s.walk(name, seen)...)
		}
	}
	return members
}

// formerDepth is the depth that the annotation ancestry of the namespace called name records.
func (s *Snapshot) formerDepth(name string) int {
	return strings.Count(s.Namespace(name).Annotations[v1alpha1.AnnotationAncestry], "/")
}

// walk returns the namespaces below name by the label parent that are not in seen, and adds them to seen.
func (s *Snapshot) walk(name string, seen map[string]bool) (below []string) {
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for _, child := range s.Children(queue[0]) {
			if !seen[child] {
				seen[child] = true
				queue, below = append(queue, child), append(below, child)
			}
		}
	}
	return below
}

// IsBelow reports whether Subtree of ancestor has the namespace called name. It costs a climb from name, however large
// the tree is.
func (s *Snapshot) IsBelow(name, ancestor string) bool {
	for seen := map[string]bool{ancestor: true}; !seen[name]; {
		seen[name] = true
		n := s.Namespace(name)
		if n == nil || n.Parent() == "" {
			return false
		}
		if name = n.Parent(); name == ancestor {
			return true
		}
	}
	return false
}

// Descendants counts the namespaces below name in its tree, halted or not, and how many of them are terminating. For a
// root, these are its Members.
func (s *Snapshot) Descendants(name string) (count, terminating int) {
	for _, below := range s.Members(name) {
		count++
		if s.Namespace(below).Terminating {
			terminating++
		}
	}
	return count, terminating
}

// SelectableLabels returns the labels of the namespace called name that selectors are matched against: its own labels,
// but the tree labels are computed from this snapshot instead of read from the object. It is nil for a missing
// namespace.
func (s *Snapshot) SelectableLabels(name string) map[string]string {
	n := s.Namespace(name)
	if n == nil {
		return nil
	}
	seen := make(map[string]string, len(n.Labels)+1)
	maps.Copy(seen, n.Labels)
	deriveTreeLabels(seen, s.Place(name).Path)
	return seen
}
