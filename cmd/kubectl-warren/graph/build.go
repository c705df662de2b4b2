package graph

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Facts are what could be read of a cluster, by lists or from caches. The slices may be in any order.
type Facts struct {
	// View has the namespaces, the conditions of the HierarchyConfigurations and the SubNamespaces; gather.EmptyView
	// begins one.
	View    tree.View
	Tenants []*v1alpha1.LNamespace
	// Unread names what could not be read, in sentences.
	Unread []string
}

// Build makes the forest of the trees that begin at roots, or of all trees. It fails if a root does not exist, or is
// not in the forest. Equal facts give equal forests.
func Build(facts Facts, roots ...string) (*Forest, error) {
	b := newBuilder(facts)
	tops := facts.View.All()
	if len(roots) > 0 {
		var err error
		if tops, err = facts.View.Below(roots); err != nil {
			return nil, err
		}
	}
	forest := &Forest{Trees: []*Node{}, Unread: slices.Concat([]string{}, facts.Unread)}
	for _, top := range tops {
		forest.Trees = append(forest.Trees, b.buildNode(top))
	}
	if len(roots) == 0 {
		forest.Trees = append(forest.Trees, b.strayNodes()...)
	} else {
		forest.Trees = withoutRepeated(forest.Trees)
	}
	forest.countNodes()
	return forest, nil
}

// OnlyTroubled returns the forest with only the trees that have a problem.
func (f *Forest) OnlyTroubled() *Forest {
	some := &Forest{Trees: []*Node{}, Unread: f.Unread}
	for _, top := range f.Trees {
		if top.isTroubled() {
			some.Trees = append(some.Trees, top)
		}
	}
	some.countNodes()
	return some
}

// Tree returns the forest with only the namespace called name and what is below it; nil where the forest has no such
// namespace.
func (f *Forest) Tree(name string) *Forest {
	var one *Forest
	f.Walk(func(n *Node, _ int) {
		if one == nil && n.Name == name && n.Kind.IsNamespace() {
			one = &Forest{Trees: []*Node{n}, Unread: f.Unread}
			one.countNodes()
		}
	})
	return one
}

// withoutRepeated returns the trees that are part of no other, each once: each namespace is drawn once.
func withoutRepeated(trees []*Node) []*Node {
	var kept []*Node
	drawn := map[string]bool{}
	for _, top := range trees {
		if drawn[top.ID] {
			continue
		}
		within := map[string]bool{}
		top.walkBelow(0, func(n *Node, _ int) { within[n.ID], drawn[n.ID] = true, true })
		kept = append(slices.DeleteFunc(kept, func(earlier *Node) bool { return within[earlier.ID] }), top)
	}
	return kept
}

func (f *Forest) countNodes() {
	f.Counts = Counts{}
	f.Walk(func(n *Node, _ int) {
		f.Counts.Rows++
		if n.Kind.IsNamespace() {
			f.Counts.Namespaces++
		}
		if n.Kind == KindTenant {
			f.Counts.Tenants++
		}
		if len(n.Problems) > 0 {
			f.Counts.Problems++
		}
	})
}

// builder makes nodes of what was read.
type builder struct {
	Facts
	subs    map[string][]*v1alpha1.SubNamespace // by parent, in the order of their names
	tenants map[string]*v1alpha1.LNamespace     // by name
	parents map[string]bool                     // the namespaces whose SubNamespaces are in the drawing
}

func newBuilder(facts Facts) *builder {
	b := &builder{
		Facts: facts, subs: map[string][]*v1alpha1.SubNamespace{}, tenants: map[string]*v1alpha1.LNamespace{}, parents: map[string]bool{},
	}
	for _, sub := range facts.View.Subs {
		b.subs[sub.Namespace] = append(b.subs[sub.Namespace], sub)
	}
	for _, subs := range b.subs {
		slices.SortFunc(subs, func(x, y *v1alpha1.SubNamespace) int { return tree.CompareNames(x.Name, y.Name) })
	}
	for _, tenant := range facts.Tenants {
		b.tenants[tenant.Name] = tenant
	}
	return b
}

func (b *builder) buildNode(from *tree.Node) *Node {
	n := &Node{
		ID: from.Name, Name: from.Name, Kind: b.kindOf(from), Template: from.Template, Cycle: from.InCycle(),
		Terminating: from.Phase == tree.PhaseTerminating, Problems: []Condition{}, Children: []*Node{},
	}
	for _, c := range from.Conditions {
		n.Problems = append(n.Problems, Condition{c, OfHierarchy})
	}
	if tenant := b.tenants[n.Name]; n.Kind == KindTenant && tenant != nil {
		n.addProblems(OfTenant, tenant.Status.Conditions)
		n.People = peopleOf(tenant)
	}
	b.parents[n.Name] = true
	for _, child := range from.Children {
		below := b.buildNode(child)
		if sub := b.findSub(n.Name, child.Name); sub != nil {
			below.addProblems(OfSub, sub.Status.Conditions)
		}
		n.Children = append(n.Children, below)
	}
	n.Children = append(n.Children, b.unmadeBelow(n.Name)...)
	slices.SortStableFunc(n.Children, func(x, y *Node) int { return tree.CompareNames(x.Name, y.Name) })
	n.countBelow()
	return n
}

func (b *builder) kindOf(n *tree.Node) Kind {
	switch n.Type {
	case tree.TypeRoot:
		root := b.View.Forest.Namespace(n.Name)
		if root.TenantUID() != "" || b.tenants[n.Name] != nil && b.isOf(root, b.tenants[n.Name]) {
			return KindTenant
		}
		return KindRoot
	case tree.TypeSubNamespace:
		if !n.Bound {
			return KindPlaced
		}
		return KindSubNamespace
	case tree.TypeTemplate:
		return KindTemplate
	case tree.TypeInstance:
		return KindInstance
	case tree.TypeMissing:
		return KindMissing
	}
	return KindUnmanaged
}

// isOf reports whether a namespace is the root of a tenant. A namespace that only a walk has named has no UID: the user
// may not read it, so nothing shows that its LNamespace is not that of its name.
func (b *builder) isOf(root *forest.Namespace, tenant *v1alpha1.LNamespace) bool {
	return b.View.Partial && root.UID == "" || v1alpha1.RecordsUID(root.TenantUID(), string(tenant.UID))
}

// findSub returns the SubNamespace name in parent, or nil.
func (b *builder) findSub(parent, name string) *v1alpha1.SubNamespace {
	i := slices.IndexFunc(b.subs[parent], func(sub *v1alpha1.SubNamespace) bool { return sub.Name == name })
	if i < 0 {
		return nil
	}
	return b.subs[parent][i]
}

// unmadeBelow returns a node for each SubNamespace in parent whose namespace does not exist, or has another parent.
func (b *builder) unmadeBelow(parent string) []*Node {
	var nodes []*Node
	for _, sub := range b.subs[parent] {
		if made := b.View.Forest.Namespace(sub.Name); made != nil && made.Parent() == parent {
			continue
		}
		n := &Node{ID: parent + "/" + sub.Name, Name: sub.Name, Kind: KindUnmadeSub, Problems: []Condition{},
			Children: []*Node{}}
		n.Terminating = !sub.DeletionTimestamp.IsZero()
		n.addProblems(OfSub, sub.Status.Conditions)
		nodes = append(nodes, n)
	}
	return nodes
}

// strayNodes returns the trees that View.All doesn't return: LNamespaces without a namespace, and namespaces in no tree
// that have SubNamespaces.
func (b *builder) strayNodes() []*Node {
	var nodes []*Node
	for _, tenant := range b.tenants {
		if made := b.View.Forest.Namespace(tenant.Name); made != nil && b.isOf(made, tenant) {
			continue
		}
		n := &Node{ID: string(OfTenant) + "/" + tenant.Name, Name: tenant.Name, Kind: KindUnmadeTenant, Problems: []Condition{},
			Children: []*Node{}}
		n.People = peopleOf(tenant)
		n.addProblems(OfTenant, tenant.Status.Conditions)
		nodes = append(nodes, n)
	}
	for parent := range b.subs {
		if above := b.View.Node(parent); above != nil && !b.parents[parent] {
			nodes = append(nodes, b.buildNode(above))
		}
	}
	slices.SortFunc(nodes, func(x, y *Node) int { return tree.CompareNames(x.ID, y.ID) })
	return nodes
}

// addProblems adds the conditions with status False whose type no problem of the node has yet. It never adds Stalled,
// and adds Ready only if there is no other problem.
func (n *Node) addProblems(of Object, conditions []metav1.Condition) {
	add := func(c metav1.Condition) {
		known := slices.ContainsFunc(n.Problems, func(p Condition) bool { return p.Type == c.Type })
		if c.Status == metav1.ConditionFalse && !known {
			n.Problems = append(n.Problems, Condition{tree.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}, of})
		}
	}
	for _, c := range conditions {
		if t := v1alpha1.ConditionType(c.Type); t != v1alpha1.ConditionReady && t != v1alpha1.ConditionStalled {
			add(c)
		}
	}
	if ready := v1alpha1.FindCondition(conditions, v1alpha1.ConditionReady); ready != nil && len(n.Problems) == 0 {
		add(*ready)
	}
}

func (n *Node) countBelow() {
	for _, child := range n.Children {
		n.Below += 1 + child.Below
		n.Troubled += child.Troubled
		if len(child.Problems) > 0 {
			n.Troubled++
		}
	}
}

func peopleOf(tenant *v1alpha1.LNamespace) *People {
	return &People{subjectNames(tenant.Spec.Managers), subjectNames(tenant.Spec.Users), subjectNames(tenant.Spec.Sudoers)}
}

func subjectNames(subjects []v1alpha1.Subject) []string {
	names := []string{}
	for _, subject := range subjects {
		names = append(names, subject.String())
	}
	return names
}
