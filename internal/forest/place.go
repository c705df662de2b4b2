package forest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Kind says what a namespace is in the forest.
type Kind int

// The kinds of namespaces. None is not in the forest.
const (
	None Kind = iota
	Root
	Template
	SubNamespace
	Instance
)

// MaxDepth is the fixed ceiling of a tree's depth, for everybody.
const MaxDepth = 128

// Halt says why nothing is written to a namespace. Its zero value means that the way to a root is sound.
type Halt struct {
	Reason  v1alpha1.Reason
	Message string
}

// Place is where a namespace stands.
type Place struct {
	Kind Kind
	// Path holds the names from the root to the namespace; for a template, an instance and a namespace that is not in the
	// forest it is empty, and so it is while the namespace is halted.
	Path []string
	Halt Halt
}

// Halted says whether the namespace, or one above it, has lost its way to a root.
func (p Place) Halted() bool { return p.Halt.Reason != "" }

// InTree says whether the namespace is a root or a sub-namespace with a sound way to its root.
func (p Place) InTree() bool { return len(p.Path) > 0 }

// Depth is the distance to the root. Only a place in a tree has one.
func (p Place) Depth() int { return len(p.Path) - 1 }

// KindOf is what the labels of n make of it, sound or not.
func (s *Snapshot) KindOf(n *Namespace) Kind {
	if n == nil || s.rules.isProtected(n) {
		return None
	}
	return n.kindByLabels()
}

// kindByLabels is what the labels of n would make of it if it were not protected.
func (n *Namespace) kindByLabels() Kind {
	switch {
	case n.Parent() != "":
		return SubNamespace
	case n.Type() == v1alpha1.TypeRoot:
		return Root
	case n.Type() == v1alpha1.TypeTemplate:
		return Template
	case n.Template() != "":
		return Instance
	}
	return None
}

// Place says where the namespace called name stands. It costs O(depth).
func (s *Snapshot) Place(name string) Place {
	n := s.Namespace(name)
	p := Place{Kind: s.KindOf(n)}
	if p.Kind == None {
		if n != nil && n.kindByLabels() != None {
			p.Halt = Halt{v1alpha1.ReasonProtected, name + " is a protected namespace"}
		}
		return p
	}
	if reason := invalidLabels(n); reason != "" {
		p.Halt = Halt{v1alpha1.ReasonInvalidLabels, reason}
		return p
	}
	if p.Kind != Root && p.Kind != SubNamespace {
		return p
	}
	p.Path, p.Halt = s.climbToRoot(n)
	return p
}

func invalidLabels(n *Namespace) string {
	switch {
	case n.Type() != "" && n.Type() != v1alpha1.TypeRoot && n.Type() != v1alpha1.TypeTemplate:
		return "label " + v1alpha1.LabelType + " must be root or template, not " + n.Type()
	case n.Type() != "" && n.Parent() != "":
		return "a sub-namespace can't be a root or a template"
	case n.Parent() != "" && len(validation.IsDNS1123Label(n.Parent())) > 0:
		return "label " + v1alpha1.LabelParent + ": " + n.Parent() + " is not a namespace name"
	case n.Template() != "" && len(validation.IsDNS1123Label(n.Template())) > 0:
		return "label " + v1alpha1.LabelTemplate + ": " + n.Template() + " is not a namespace name"
	}
	return ""
}

// climbToRoot follows the labels from n to its root. It returns the path in order, or why there is none.
func (s *Snapshot) climbToRoot(n *Namespace) ([]string, Halt) {
	path := []string{n.Name}
	var strangers []*Namespace // those whose parent is another one than it was
	for at := n; at.Parent() != ""; {
		up, halt := s.stepToParent(at)
		if halt.Reason != "" {
			if at != n && halt.Reason != v1alpha1.ReasonAncestorHalted { // which names the ancestor already
				halt = ancestorHalted(at.Name, halt.Reason)
			}
			return nil, halt
		}
		if i := slices.Index(path, up.Name); i >= 0 {
			return nil, cycleMessage(path, i, up.Name)
		}
		if len(path) > MaxDepth {
			return nil, Halt{v1alpha1.ReasonDepthExceeded, "a tree is at most 128 deep"}
		}
		if was := at.Annotations[v1alpha1.AnnotationParentUID]; was != "" && was != up.UID {
			strangers = append(strangers, at)
		}
		path = append(path, up.Name)
		at = up
	}
	slices.Reverse(path)
	for _, n := range slices.Backward(strangers) {
		if halt := parentReplaced(n, path); halt.Reason != "" {
			return nil, halt
		}
	}
	return path, Halt{}
}

// parentReplaced says whether the parent of n, which is another one than it was, stands elsewhere: whoever made that one must not
// get what waits for the name. A parent that came back at its place is welcome. path leads through n.
func parentReplaced(n *Namespace, path []string) Halt {
	i := slices.Index(path, n.Name)
	parent, now := path[i-1], strings.Join(path[:i], "/")
	before := strings.TrimSuffix(n.Annotations[v1alpha1.AnnotationAncestry], "/"+n.Name)
	switch {
	case before == "", before == now, parent != before[strings.LastIndex(before, "/")+1:]:
		return Halt{} // nothing is known, it is at its place, or n was moved below another parent
	case i < len(path)-1:
		return ancestorHalted(n.Name, v1alpha1.ReasonParentReplaced)
	}
	return Halt{v1alpha1.ReasonParentReplaced, fmt.Sprintf("parent namespace %s is not the one that stood at %s, it stands elsewhere; "+
		"a cluster admin accepts it by removing the annotation %s", parent, before, v1alpha1.AnnotationAncestry)}
}

func ancestorHalted(name string, reason v1alpha1.Reason) Halt {
	return Halt{v1alpha1.ReasonAncestorHalted, "ancestor " + name + " is halted (" + string(reason) + "); resolve that first"}
}

// stepToParent goes from a sub-namespace to its parent, or says why that is no parent.
func (s *Snapshot) stepToParent(at *Namespace) (*Namespace, Halt) {
	up := s.Namespace(at.Parent())
	switch kind := s.KindOf(up); {
	case up == nil:
		return nil, Halt{v1alpha1.ReasonParentMissing, "parent namespace " + at.Parent() + " does not exist"}
	case up.Terminating:
		return nil, Halt{v1alpha1.ReasonParentTerminating, "parent namespace " + up.Name + " is being terminated"}
	case kind != Root && kind != SubNamespace:
		return nil, Halt{v1alpha1.ReasonParentNotManaged, "parent namespace " + up.Name + " is neither a root nor a sub-namespace"}
	case invalidLabels(up) != "":
		return nil, ancestorHalted(up.Name, v1alpha1.ReasonInvalidLabels)
	}
	return up, Halt{}
}

// cycleMessage tells of the cycle path[i:] that closes at name. Whoever merely hangs below it has a halted ancestor.
func cycleMessage(path []string, i int, name string) Halt {
	if i > 0 {
		return ancestorHalted(name, v1alpha1.ReasonInCycle)
	}
	least := slices.Index(path, slices.Min(path))
	text := slices.Concat(path[least:], path[:least], path[least:least+1])
	return Halt{v1alpha1.ReasonInCycle, strings.Join(text, " -> ")}
}

// InTree says whether namespace is root or lies below it.
func (s *Snapshot) InTree(namespace, root string) bool {
	p := s.Place(namespace)
	return p.InTree() && p.Path[0] == root
}

// onlyRoot are the labels of a root that has no others that count: of thousands of roots one map.
var onlyRoot = map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}

// Placing is n with nothing but what Place reads, for who asks no more than that. Maps that would be empty are nil.
func (n *Namespace) Placing() *Namespace {
	placing := &Namespace{Name: n.Name, UID: n.UID, Terminating: n.Terminating,
		Labels: only(n.Labels, v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate, v1alpha1.LabelProtected)}
	if maps.Equal(placing.Labels, onlyRoot) {
		placing.Labels = onlyRoot
	}
	if n.Parent() != "" {
		placing.Annotations = only(n.Annotations, v1alpha1.AnnotationParentUID, v1alpha1.AnnotationAncestry)
	}
	return placing
}

func only(all map[string]string, keys ...string) map[string]string {
	var some map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if some == nil {
				some = make(map[string]string, len(keys))
			}
			some[key] = value
		}
	}
	return some
}

// Owns says whether the namespace called root is the one that the LNamespace with this UID made or adopted.
func (s *Snapshot) Owns(root, uid string) bool {
	n := s.Namespace(root)
	return n != nil && uid != "" && n.TenantUID() == uid
}

// CascadingAllowed says whether the deletion of the namespace called name may delete what is below it.
func (s *Snapshot) CascadingAllowed(name string) bool {
	if s.rules.AllowCascading {
		return true
	}
	seen := map[string]bool{}
	for n := s.Namespace(name); n != nil && !seen[n.Name]; n = s.Namespace(n.Parent()) {
		if n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True {
			return true
		}
		seen[n.Name] = true
	}
	return false
}
