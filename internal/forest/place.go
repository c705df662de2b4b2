package forest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Kind describes what a namespace is in the forest.
type Kind int

// The kinds of namespaces. None is the kind of a namespace outside the forest.
const (
	None Kind = iota
	Root
	Template
	SubNamespace
	Instance
)

// MaxDepth is the greatest depth that any tree may have; no configured limit raises it.
const MaxDepth = 128

// Halt explains why the operator gives nothing to a namespace. The zero value means that the namespace is not halted.
type Halt struct {
	Reason  v1alpha1.Reason
	Message string
}

// Place describes what a namespace is in the forest, and where it is.
type Place struct {
	Kind Kind
	// Path holds the names from the root to the namespace, both included. It is empty for a halted namespace, a
	// template, an instance and a namespace that is not in the forest.
	Path []string
	Halt Halt
}

// Halted reports whether the operator gives nothing to a namespace whose labels ask for a place: its way to a root is
// broken, its labels are invalid, or it is protected.
func (p Place) Halted() bool { return p.Halt.Reason != "" }

// InTree reports whether the namespace is a root or a sub-namespace with a sound way to its root.
func (p Place) InTree() bool { return len(p.Path) > 0 }

// Depth is the distance to the root. It is meaningful only if InTree.
func (p Place) Depth() int { return len(p.Path) - 1 }

// KindOf returns the kind that the labels of n claim, even if n is halted. It returns None for a protected namespace
// and for nil.
func (s *Snapshot) KindOf(n *Namespace) Kind {
	if n == nil || s.rules.isProtected(n) {
		return None
	}
	return n.KindByLabels()
}

// Protected reports whether the namespace called name is never in the forest, by its name or by its label.
func (s *Snapshot) Protected(name string) bool {
	if n := s.Namespace(name); n != nil {
		return s.rules.isProtected(n)
	}
	return s.rules.ProtectedName != nil && s.rules.ProtectedName(name)
}

// KindByLabels returns the kind that n would have if it were not protected.
func (n *Namespace) KindByLabels() Kind {
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

// Place returns what the namespace called name is in the forest, and where it is. It costs O(depth).
func (s *Snapshot) Place(name string) Place {
	n := s.Namespace(name)
	p := Place{Kind: s.KindOf(n)}
	if p.Kind == None {
		if n != nil && n.KindByLabels() != None {
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
	var replaced []*Namespace // sub-namespaces on the path whose parent has another UID than recorded
	for at := n; at.Parent() != ""; {
		up, halt := s.stepToParent(at)
		if halt.Reason != "" {
			if at != n && halt.Reason != v1alpha1.ReasonAncestorHalted { // ReasonAncestorHalted names the ancestor already
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
		if recordsOther(at, up) {
			replaced = append(replaced, at)
		}
		path = append(path, up.Name)
		at = up
	}
	slices.Reverse(path)
	// Only a whole path can be compared with the recorded place of a parent; the highest difference halts all below it.
	for _, n := range slices.Backward(replaced) {
		if halt := parentReplaced(n, path); halt.Reason != "" {
			return nil, halt
		}
	}
	return path, Halt{}
}

// parentReplaced returns the halt of a sub-namespace n whose parent has another UID than recorded, and is at another
// place than the recorded parent was. Without it, a user could make a namespace with the name of the old parent, and so
// get the children of the old one. path leads from the root through n, and may continue to a namespace below n.
func parentReplaced(n *Namespace, path []string) Halt {
	i := slices.Index(path, n.Name)
	parent, now, before := path[i-1], strings.Join(path[:i], "/"), placeOfParent(n)
	switch {
	// No place is recorded, n was moved below another parent, or the parent was created again at its old place.
	case before == "", before == now:
		return Halt{}
	case i < len(path)-1:
		return ancestorHalted(n.Name, v1alpha1.ReasonParentReplaced)
	}
	return Halt{v1alpha1.ReasonParentReplaced, fmt.Sprintf("parent namespace %s at %s was deleted, and a new namespace "+
		"of that name is at another place. A cluster admin can accept the new one as the parent: remove annotation %s from this namespace",
		parent, before, v1alpha1.AnnotationAncestry)}
}

// recordsOther reports whether n records another UID than that of parent, the namespace that now has the name of n's
// parent.
func recordsOther(n, parent *Namespace) bool {
	recorded := n.Annotations[v1alpha1.AnnotationParentUID]
	return recorded != "" && !v1alpha1.RecordsUID(recorded, parent.UID)
}

// placeOfParent returns the recorded place of n's parent, such as org/team-a. It returns "" if n records no place, or
// was moved below another parent since.
func placeOfParent(n *Namespace) string {
	place := strings.TrimSuffix(n.Annotations[v1alpha1.AnnotationAncestry], "/"+n.Name)
	if place[strings.LastIndex(place, "/")+1:] != n.Parent() {
		return ""
	}
	return place
}

// IsParentTaken reports whether n is halted because another namespace has taken the name of its parent: one at another
// place, in no tree, or in termination. That namespace has no authority over n, which still belongs to the tree that
// its ancestry names.
func (s *Snapshot) IsParentTaken(n *Namespace) bool {
	switch s.Place(n.Name).Halt.Reason {
	case v1alpha1.ReasonParentReplaced:
		return true
	case v1alpha1.ReasonParentNotManaged, v1alpha1.ReasonParentTerminating:
		return placeOfParent(n) != "" && recordsOther(n, s.Namespace(n.Parent()))
	}
	return false
}

func ancestorHalted(name string, reason v1alpha1.Reason) Halt {
	return Halt{v1alpha1.ReasonAncestorHalted, "ancestor " + name + " is halted (" + string(reason) + "); resolve that first"}
}

// stepToParent returns the parent of a sub-namespace, or the halt that explains why there is none.
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

// cycleMessage returns the halt for a climb that reached name, which is path[i], a second time. A namespace that is
// below the cycle, but not in it, has a halted ancestor.
func cycleMessage(path []string, i int, name string) Halt {
	if i > 0 {
		return ancestorHalted(name, v1alpha1.ReasonInCycle)
	}
	// The text begins with the same name for each namespace of the cycle, so that its conditions are equal.
	least := slices.Index(path, slices.Min(path))
	text := slices.Concat(path[least:], path[:least], path[least:least+1])
	return Halt{v1alpha1.ReasonInCycle, strings.Join(text, " -> ")}
}

// InTree reports whether namespace is root or lies below it, on a sound path.
func (s *Snapshot) InTree(namespace, root string) bool {
	p := s.Place(namespace)
	return p.InTree() && p.Path[0] == root
}

// onlyRoot holds the label of a root that has no other label that Place reads. All such roots share this map, to save
// memory.
var onlyRoot = map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}

// Placing returns n reduced to what Place reads, to save memory for callers that need nothing else. Maps that would be
// empty are nil.
func (n *Namespace) Placing() *Namespace {
	placing := &Namespace{Name: n.Name, UID: n.UID, Terminating: n.Terminating,
		Labels: selectKeys(n.Labels, v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate, v1alpha1.LabelProtected)}
	if maps.Equal(placing.Labels, onlyRoot) {
		placing.Labels = onlyRoot
	}
	if n.Parent() != "" {
		placing.Annotations = selectKeys(n.Annotations, v1alpha1.AnnotationParentUID, v1alpha1.AnnotationAncestry)
	}
	return placing
}

func selectKeys(all map[string]string, keys ...string) map[string]string {
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
