// Package describe describes one namespace of the forest (Warren's trees of namespaces) in full, as far as the user may
// read, and writes that description.
package describe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/quota"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Namespace is a namespace with its surroundings. Its JSON form is an interface that scripts rely on.
type Namespace struct {
	Name     string    `json:"name"`
	Type     tree.Type `json:"type"`
	Root     string    `json:"root,omitempty"`
	Parent   string    `json:"parent,omitempty"`
	Template string    `json:"template,omitempty"`
	Bound    bool      `json:"bound"`
	// Depth is the distance to the root; nil if the namespace is in no tree, or is halted: its ancestors can't be followed
	// to a root.
	Depth     *int     `json:"depth,omitempty"`
	Phase     string   `json:"phase"`
	Children  []string `json:"children"`
	Instances []string `json:"instances"`

	Cascading Cascading `json:"cascadingDeletion"`
	// Limits are those of the tree; nil if the namespace is halted or in no tree, or if the LNamespace or the usage could
	// not be read.
	Limits *Limits `json:"limits,omitempty"`
	// Budget is what the tree uses of what it may use; nil if it has none, or the LNamespace could not be read.
	Budget *v1alpha1.BudgetStatus `json:"budget,omitempty"`
	// Share is what the namespace itself may use of that; nil if it has no share, or the user may not read it.
	Share *quota.Share `json:"share,omitempty"`
	// Billing is who pays for the tree; nil if the LNamespace names nobody or could not be read.
	Billing *v1alpha1.Billing `json:"billing,omitempty"`

	Inherited []Inherited `json:"inherited"`
	Resources []Resource  `json:"resources"`
	// Unlisted are the kinds that the user may not list, so that their copies and sources are missing in Resources.
	Unlisted []string `json:"unlisted,omitempty"`
	// Conflicts are the objects that are in the way of copies: the operator writes each copy once its object is renamed or
	// deleted.
	Conflicts  []trace.Obstacle   `json:"conflicts"`
	Conditions []metav1.Condition `json:"conditions"`
	Events     []Event            `json:"events"`
	// EventsLeftOut is how many older Events are left out of Events.
	EventsLeftOut int `json:"eventsLeftOut,omitempty"`
}

// Cascading reports whether the namespaces below may be deleted with this one. The plugin doesn't see whether the
// operator's configuration allows that everywhere.
type Cascading struct {
	Allowed bool `json:"allowed"`
	// By is the namespace that allows it: this one, or the nearest above that does.
	By string `json:"by,omitempty"`
}

// Limits reports how much of the tree's limits is used.
type Limits struct {
	SubNamespaces Usage `json:"subNamespaces"`
	Depth         Usage `json:"depth"`
	// Copies and Bytes are the limits in the LNamespace; the plugin doesn't see how much is used.
	Copies *int32 `json:"copies,omitempty"`
	Bytes  *int64 `json:"bytes,omitempty"`
}

// Usage is an amount, and the limit in the LNamespace. Limit is nil if no LNamespace sets one: then the configuration's
// default applies.
type Usage struct {
	Used  int32  `json:"used"`
	Limit *int32 `json:"limit,omitempty"`
}

// Resource is a copy in the namespace, or a source: an object that the operator copies to the namespaces below. With From
// and Problem, it is a source above of which the namespace gets no copy.
type Resource struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From is the namespace of the source; "" for a source in the described namespace.
	From string `json:"from,omitempty"`
	Mode string `json:"mode"`
	// Problem is why the operator doesn't copy a source; "" if it does.
	Problem string `json:"problem,omitempty"`
}

// Event is an Event about the namespace, or about a copy or source in it.
type Event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  string      `json:"object"`
	Message string      `json:"message"`
}

// Of describes the namespace called name by the objects in view. tenant is the LNamespace of its tree, nil if there is
// none; known reports whether that could be read. The caller adds Resources and Events. Of returns nil if there is no
// such namespace.
func Of(view tree.View, name string, tenant *v1alpha1.LNamespace, known bool) *Namespace {
	node := view.Node(name)
	if node == nil {
		return nil
	}
	n := view.Forest.Namespace(name)
	d := &Namespace{
		Name: name, Type: node.Type, Root: RootOf(view, name), Parent: n.Parent(), Template: n.Template(),
		Bound: node.Bound, Depth: node.Depth, Phase: node.Phase,
		Children: joinNames(view.Forest.Children(name)), Instances: joinNames(view.Forest.Instances(name)),
		Cascading: cascadingText(view.Forest, n), Inherited: inheritedKeys(view.Forest, n),
		Resources: []Resource{}, Conflicts: trace.ObstaclesIn(view.Conditions[name]), Conditions: reportedConditions(view, node),
		Events: []Event{},
	}
	if tenant != nil {
		d.Billing, d.Budget = tenant.Spec.Billing, tenant.Status.Budget
	}
	if counted := !view.Partial || tenant != nil; known && counted && d.Root != "" && d.Depth != nil {
		d.Limits = limitsText(view, d.Root, int32(*d.Depth), tenant)
	}
	return d
}

// RootOf returns the root of the namespace's tree by its ancestors; "" if it is in no tree, or halted. If some
// ancestors can't be read, it may return the root that the operator's annotation on the namespace names.
func RootOf(view tree.View, name string) string {
	if !view.Partial && !view.Forest.Place(name).InTree() {
		return ""
	}
	return view.Forest.RootOf(name)
}

func joinNames(names []string) []string { return append([]string{}, names...) }

func cascadingText(s *forest.Snapshot, n *forest.Namespace) Cascading {
	seen := map[string]bool{}
	for ; n != nil && !seen[n.Name]; n = s.Namespace(n.Parent()) {
		seen[n.Name] = true
		if n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True {
			return Cascading{true, n.Name}
		}
	}
	return Cascading{}
}

func limitsText(view tree.View, root string, depth int32, tenant *v1alpha1.LNamespace) *Limits {
	l := &Limits{Depth: Usage{Used: depth}}
	if tenant != nil && tenant.Spec.Limits != nil {
		l.SubNamespaces.Limit, l.Depth.Limit = tenant.Spec.Limits.SubNamespaces, tenant.Spec.Limits.Depth
		l.Copies, l.Bytes = tenant.Spec.Limits.Copies, tenant.Spec.Limits.Bytes
	}
	if view.Partial {
		l.SubNamespaces.Used = tenant.Status.SubNamespaces
	} else {
		used, _ := view.Forest.Descendants(root)
		l.SubNamespaces.Used = int32(used)
	}
	return l
}

// reportedConditions returns the conditions of the HierarchyConfiguration; if it has none, conditions for the problems
// that the labels show.
func reportedConditions(view tree.View, node *tree.Node) []metav1.Condition {
	all := append([]metav1.Condition{}, view.Conditions[node.Name]...)
	if len(all) > 0 {
		return all
	}
	for _, c := range node.Conditions {
		all = append(all, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	return all
}
