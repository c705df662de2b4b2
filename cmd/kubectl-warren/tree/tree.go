// Package tree makes the trees that kubectl warren shows from what could be read of a cluster, and draws them. It is
// pure. The command tree is in package list.
package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// View is what a user could read of a cluster.
type View struct {
	Forest *forest.Snapshot
	// Conditions of the HierarchyConfigurations, by namespace.
	Conditions map[string][]metav1.Condition
	// Partial reports that Forest holds only what a walk from some namespaces found. A parent that is not in Forest may
	// exist then, so a namespace counts as halted (its ancestors can't be followed to a root) only if its
	// HierarchyConfiguration says so.
	Partial bool
	// References makes the drawings follow only references to templates: below a template are all namespaces that
	// reference it, also roots of trees.
	References bool
	// Subs are the SubNamespaces that were read. The drawings of this package don't use them.
	Subs []*v1alpha1.SubNamespace
	// Unread names what could not be read, in sentences.
	Unread []string
}

// Type describes what a namespace is.
type Type string

// The types of namespaces. TypeMissing is for a parent or template that does not exist. TypeNone is for a parent that
// is neither a root nor a sub-namespace, or a namespace that is referenced as a template but is none.
const (
	TypeRoot         Type = "root"
	TypeTemplate     Type = "template"
	TypeSubNamespace Type = "sub-namespace"
	TypeInstance     Type = "instance"
	TypeNone         Type = "none"
	TypeMissing      Type = "missing"
)

// Phases of a namespace. A missing one has none.
const (
	PhaseActive      = "Active"
	PhaseTerminating = "Terminating"
)

// Node is a namespace with the namespaces below it. Its JSON form is an interface that scripts rely on.
type Node struct {
	Name  string `json:"name"`
	Type  Type   `json:"type"`
	Bound bool   `json:"bound"`
	// Depth is the distance to the root; nil if the namespace is in no tree, or if the distance is not known. It is nil
	// for a halted namespace, too, unless the View is Partial. Then it may come from the node above, or from tree labels
	// that were written earlier.
	Depth *int   `json:"depth,omitempty"`
	Phase string `json:"phase,omitempty"`
	// Conditions are the namespace's problems.
	Conditions []Condition `json:"conditions"`
	Children   []*Node     `json:"children"`
	// Template names the template that the namespace references; "" where there is none.
	Template string `json:"-"`
}

// Condition is what is wrong with a namespace.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// All returns every tree: roots first, then templates with their instances, then namespaces without a way to a root:
// cycles, each starting at its smallest name, and parents that are missing or that Warren doesn't manage. Each group is
// in the order of CompareNames.
func (v View) All() []*Node {
	nodes := []*Node{}
	for _, name := range v.topNames() {
		nodes = append(nodes, v.makeNode(name, name, nil))
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int { return groupRank(a) - groupRank(b) })
	return nodes
}

// Below returns the trees that start at the namespaces named, each once, in the order of names. It fails if one of them
// does not exist or is not in the forest.
func (v View) Below(names []string) ([]*Node, error) {
	nodes := []*Node{}
	var missing, outside []string
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
		case v.Forest.Namespace(name) == nil:
			missing = append(missing, strconv.Quote(name))
		case !v.isShown(name):
			outside = append(outside, strconv.Quote(name))
		default:
			nodes = append(nodes, v.makeNode(name, name, nil))
		}
	}
	switch {
	case len(missing) > 0:
		return nil, fmt.Errorf("no such namespace: %s; kubectl warren tree shows all trees", strings.Join(missing, ", "))
	case len(outside) > 0:
		return nil, fmt.Errorf("not in a tree: %s; only a root, a sub-namespace, a template or an instance of one can be listed",
			strings.Join(outside, ", "))
	}
	return nodes, nil
}

// Node returns the namespace called name, with what is shown below it, whether it is in the forest or not; nil if there
// is none.
func (v View) Node(name string) *Node {
	if v.Forest.Namespace(name) == nil {
		return nil
	}
	return v.makeNode(name, name, nil)
}

func groupRank(n *Node) int {
	order := []Type{TypeRoot, TypeTemplate, TypeSubNamespace, TypeInstance, TypeNone, TypeMissing}
	return slices.Index(order, n.Type)
}

// parentShown is the name under which n is shown, or "". Unless References is set, a root is not shown under its
// template: it begins a tree.
func (v View) parentShown(n *forest.Namespace) string {
	if !v.References && (n.Parent() != "" || n.Type() == v1alpha1.TypeRoot) {
		return n.Parent()
	}
	return n.Template()
}

// childrenShown are the names that are shown under name, in the order of CompareNames.
func (v View) childrenShown(name string) []string {
	names := slices.Concat(v.Forest.Children(name), v.Forest.Instances(name))
	names = slices.DeleteFunc(names, func(child string) bool { return v.parentShown(v.Forest.Namespace(child)) != name })
	slices.SortFunc(names, CompareNames)
	return slices.Compact(names)
}

// isShown reports whether the namespace called name has a place in a drawing: at the top, below another namespace, or
// because others are below it.
func (v View) isShown(name string) bool {
	n := v.Forest.Namespace(name)
	if n == nil {
		return false
	}
	begins := n.Type() == v1alpha1.TypeRoot && !v.References || n.Type() == v1alpha1.TypeTemplate
	return begins || v.parentShown(n) != "" || len(v.childrenShown(name)) > 0
}

// topNames are the names at which drawings of everything start, in the order of CompareNames.
func (v View) topNames() []string {
	var tops []string
	seen := map[string]bool{}
	for _, name := range slices.Sorted(v.Forest.All()) {
		if !v.isShown(name) {
			continue
		}
		if top, ok := v.climbToTop(name, seen); ok {
			tops = append(tops, top)
		}
	}
	slices.SortFunc(tops, CompareNames)
	return tops
}

// climbToTop goes up from name to where its drawing starts; ok is false if that way was seen before.
func (v View) climbToTop(name string, seen map[string]bool) (top string, ok bool) {
	var way []string
	for !seen[name] {
		seen[name] = true
		way = append(way, name)
		n := v.Forest.Namespace(name)
		if n == nil || v.parentShown(n) == "" {
			return name, true
		}
		name = v.parentShown(n)
	}
	if i := slices.Index(way, name); i >= 0 { // back on its own way: a cycle
		return slices.Min(way[i:]), true
	}
	return "", false
}

// makeNode makes the node of name, below parent (nil at the top); start is the name at the top. A namespace has one
// parent at most, so only start can be reached again, in a cycle. Then makeNode leaves it out.
func (v View) makeNode(name, start string, parent *Node) *Node {
	node := &Node{Name: name, Type: TypeMissing, Conditions: []Condition{}, Children: []*Node{}}
	if n := v.Forest.Namespace(name); n != nil {
		node.Type = v.typeOf(n)
		node.Bound = n.Parent() != "" && n.Bound()
		place := v.Forest.Place(name)
		node.Depth = v.depthOf(n, place, parent)
		node.Phase = PhaseActive
		if n.Terminating {
			node.Phase = PhaseTerminating
		}
		node.Conditions = v.badConditions(n, place)
		node.Template = n.Template()
	}
	for _, child := range v.childrenShown(name) {
		if child != start {
			node.Children = append(node.Children, v.makeNode(child, start, node))
		}
	}
	return node
}

func (v View) typeOf(n *forest.Namespace) Type {
	switch v.Forest.KindOf(n) {
	case forest.Root:
		return TypeRoot
	case forest.Template:
		return TypeTemplate
	case forest.SubNamespace:
		return TypeSubNamespace
	case forest.Instance:
		return TypeInstance
	}
	return TypeNone
}

func (v View) depthOf(n *forest.Namespace, place forest.Place, parent *Node) *int {
	if place.InTree() {
		depth := place.Depth()
		return &depth
	}
	if !v.Partial || v.typeOf(n) != TypeSubNamespace {
		return nil
	}
	if parent != nil && parent.Depth != nil {
		depth := *parent.Depth + 1
		return &depth
	}
	return labelledDepth(n)
}

// labelledDepth returns the depth that the operator's tree labels show: the distance to the farthest ancestor; nil if
// there are none.
func labelledDepth(n *forest.Namespace) *int {
	var depth *int
	for key, value := range n.Labels {
		distance, err := strconv.Atoi(value)
		if err == nil && strings.HasSuffix(key, v1alpha1.TreeLabelSuffix) && (depth == nil || distance > *depth) {
			depth = &distance
		}
	}
	return depth
}
