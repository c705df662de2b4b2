// Package graph is the command "kubectl warren graph", which draws the forest: Warren's trees of namespaces. Read asks
// the API server; everything else is pure. Build makes a Forest of what was read, Forest.Rows describes it in words,
// and the Write functions draw it as HTML, SVG and Mermaid.
package graph

import (
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

// Kind describes what a row of the forest is, in the word that the reader sees.
type Kind string

// The kinds of rows. The last two are objects whose namespace does not exist, or belongs to another object.
const (
	KindTenant       Kind = "tenant"
	KindRoot         Kind = "root"
	KindSubNamespace Kind = "sub-namespace"
	KindPlaced       Kind = "placed"
	KindTemplate     Kind = "template"
	KindInstance     Kind = "instance"
	KindUnmanaged    Kind = "not managed"
	KindMissing      Kind = "(missing)"
	KindUnmadeSub    Kind = "SubNamespace without namespace"
	KindUnmadeTenant Kind = "LNamespace without namespace"
)

// Class is the kind as one word, for style sheets.
func (k Kind) Class() string {
	switch k {
	case KindSubNamespace:
		return "sub"
	case KindUnmanaged:
		return "unmanaged"
	case KindMissing:
		return "missing"
	case KindUnmadeSub, KindUnmadeTenant:
		return "unmade"
	}
	return string(k)
}

// IsNamespace reports whether a row of this kind stands for a namespace that exists.
func (k Kind) IsNamespace() bool {
	return k != KindMissing && k != KindUnmadeSub && k != KindUnmadeTenant
}

// Node is a row of the forest with the rows below it.
type Node struct {
	// ID is unique in the forest. It is the name of the namespace, PARENT/NAME for a SubNamespace without namespace, and
	// LNamespace/NAME for an LNamespace without namespace.
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Template names the template that the namespace references; "" where there is none.
	Template    string `json:"template,omitempty"`
	Cycle       bool   `json:"cycle,omitempty"`
	Terminating bool   `json:"terminating,omitempty"`
	// Below counts the rows below, of all levels. Troubled counts those among them that have problems.
	Below    int         `json:"below"`
	Troubled int         `json:"troubled"`
	Problems []Condition `json:"problems"`
	People   *People     `json:"people,omitempty"`
	Children []*Node     `json:"children"`
}

// Object is the kind of an object that reports a condition.
type Object string

// The objects that report conditions of a row.
const (
	OfHierarchy Object = "HierarchyConfiguration"
	OfSub       Object = "SubNamespace"
	OfTenant    Object = "LNamespace"
)

// Condition is a problem of a row, and the kind of object that reports it.
type Condition struct {
	tree.Condition
	Of Object `json:"of"`
}

// People are the lists of a tenant, each entry as "User mia".
type People struct {
	Managers []string `json:"managers"`
	Users    []string `json:"users"`
	Sudoers  []string `json:"sudoers"`
}

// Forest is everything that a drawing shows.
type Forest struct {
	Trees  []*Node `json:"trees"`
	Counts Counts  `json:"counts"`
	// Unread names what could not be read, each in a sentence such as "you may not list LNamespaces".
	Unread []string `json:"unread"`
}

// Counts are the numbers at the head of a drawing. Rows counts all rows, Problems those with a problem.
type Counts struct {
	Tenants    int `json:"tenants"`
	Namespaces int `json:"namespaces"`
	Problems   int `json:"problems"`
	Rows       int `json:"rows"`
}

// Walk calls visit with each row of the forest, in the order in which they are drawn. The depth of a tree's first row
// is 0.
func (f *Forest) Walk(visit func(n *Node, depth int)) {
	for _, top := range f.Trees {
		top.walkBelow(0, visit)
	}
}

func (n *Node) walkBelow(depth int, visit func(n *Node, depth int)) {
	visit(n, depth)
	for _, child := range n.Children {
		child.walkBelow(depth+1, visit)
	}
}

// isTroubled reports whether the row or one below it has a problem.
func (n *Node) isTroubled() bool { return len(n.Problems) > 0 || n.Troubled > 0 }
