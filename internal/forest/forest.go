// Package forest holds what is known of all namespaces, as immutable snapshots, and computes what follows from that
// alone: which namespace is below which, what is halted, which keys a Namespace should carry, which moves are possible.
// It does no I/O.
//
// A snapshot holds facts as they were observed: namespaces, SubNamespaces, tenants and HierarchyConfigurations. A
// change makes a new snapshot that shares all but O(log n) of its memory with the old one.
//
// A tenant is an LNamespace and the tree below its namespace. A namespace is halted while its labels don't lead to a
// root on a sound path: the operator gives nothing to a halted namespace, which still counts in its tree. A namespace
// is bound if a SubNamespace in its parent owns its life. Without this difference, a tenant could create a SubNamespace
// for a namespace that was only placed in its tree, and delete it. A namespace is released when the operator takes it
// out of a tenant's tree because the tenant's lists no longer name any of its holders (see Namespace.HeldBy).
//
// The methods of Snapshot return facts, and the place of a namespace in the trees (place.go, path.go, belongs.go).
// Functions return what follows from them, by subject: the keys of a Namespace (metadata.go, inheritance.go,
// podsecurity.go, billing.go, replaced.go), a place that is asked for (hierarchy.go, obstacles.go, limits.go,
// required.go, held.go), who else a change concerns (concerned.go), deletion (endings.go), and on whose account an
// LNamespace counts (creators.go).
//
// Some decisions:
//   - The label parent decides where a namespace is; a HierarchyConfiguration is a request with a record (annotation applied-parent). So
//     deleting a HierarchyConfiguration moves nothing, and a cluster admin's change of the label is not undone.
//   - Halting freezes everything, the tree labels too. Without the reasons ParentTerminating and ParentReplaced, copies would be lost, or
//     whoever takes the name of a deleted parent would get the namespaces that wait for it.
//   - A SubNamespace never waits for a name that another team has. While that team deletes its namespace and creates it anew, the
//     SubNamespace could get the name first. Then the team would write into another team's tree.
//   - Only bound children prevent a deletion. The permission to delete them too is an annotation of the Namespace, because the namespace
//     controller often deletes the HierarchyConfiguration first. A finalizer would hold the same fact again, and block deletion where no
//     operator runs.
//   - The topmost value of an inherited key wins, so that nothing below hides a policy from above.
//   - A conflict of objects is reported, and never refuses a move. A conflict of labels or annotations does, if a
//     HierarchyConfiguration asks for the move.
package forest

import (
	"iter"
	"strings"
	"time"

	"github.com/benbjohnson/immutable"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Namespace is what the forest knows of one Namespace. Its maps are never changed.
type Namespace struct {
	Name, UID, ResourceVersion string
	Labels, Annotations        map[string]string
	Created                    time.Time
	Terminating                bool
}

// Sub is what the forest knows of one SubNamespace. Its maps are never changed.
type Sub struct {
	Parent, Name        string
	UID                 string
	Labels, Annotations map[string]string
	Created             time.Time
	Deleting            bool
	// NameLost reports that a namespace outside of the tree had the name when the SubNamespace, with its present spec,
	// asked for that name.
	NameLost bool
}

// Tenant is what the forest knows of one LNamespace.
type Tenant struct {
	Name, UID, Template string
	AllowCascading      bool
	Deleting            bool
	// Creator is the user who made the LNamespace, "" where a cluster admin did and stated no other. Created is when
	// the LNamespace was made.
	Creator string
	Created time.Time
	// Listed holds the users, managers and sudoers, each as the String of its Subject.
	Listed map[string]bool
	// Managers are the managers, each as the String of its Subject.
	Managers []string
	// Limits have nil fields where the LNamespace sets no limit.
	Limits v1alpha1.Limits
	// CostCenter and Owner come from spec.billing; "" where the LNamespace leaves them out.
	CostCenter, Owner string
}

func (n *Namespace) label(key string) string { return n.Labels[key] }

// Type is the value of the label type: root, template, an invalid value, or "" where the label is absent or empty.
func (n *Namespace) Type() string { return n.label(v1alpha1.LabelType) }

// Parent names the parent; "" where there is none.
func (n *Namespace) Parent() string { return n.label(v1alpha1.LabelParent) }

// Template names the template that is referenced; "" where there is none.
func (n *Namespace) Template() string { return n.label(v1alpha1.LabelTemplate) }

// Bound reports that a SubNamespace of the namespace's name, in its parent, owns the namespace's life.
func (n *Namespace) Bound() bool { return n.label(v1alpha1.LabelBound) == v1alpha1.True }

// TenantUID is the UID of the LNamespace that made or adopted the namespace, or "".
func (n *Namespace) TenantUID() string { return n.Annotations[v1alpha1.AnnotationLNamespaceUID] }

// FormerRoot returns the first name in the annotation ancestry, or "": the root of the tree that the namespace is in,
// or was in last.
func (n *Namespace) FormerRoot() string {
	root, _, _ := strings.Cut(n.Annotations[v1alpha1.AnnotationAncestry], "/")
	return root
}

type names = immutable.SortedSet[string]

// Snapshot is the forest at one moment. The zero value is not usable; start with New.
type Snapshot struct {
	rules      Rules
	namespaces *immutable.Map[string, *Namespace]
	children   *immutable.Map[string, names] // by the label parent, whether or not that namespace exists
	instances  *immutable.Map[string, names] // by the label template, whether or not that namespace exists
	standing   *immutable.Map[string, names] // by the first name in the annotation ancestry
	subs       *immutable.Map[string, *Sub]  // by parent/name
	subsIn     *immutable.Map[string, names] // names of SubNamespaces by parent
	parentsOf  *immutable.Map[string, names] // parents of SubNamespaces by name
	tenants    *immutable.Map[string, *Tenant]
	// hierarchies are the HierarchyConfigurations by namespace.
	hierarchies *immutable.Map[string, *Hierarchy]
}

// New returns an empty snapshot that applies rules.
func New(rules Rules) *Snapshot {
	hash := immutable.NewHasher("")
	return &Snapshot{
		rules:       rules,
		namespaces:  immutable.NewMap[string, *Namespace](hash),
		children:    immutable.NewMap[string, names](hash),
		instances:   immutable.NewMap[string, names](hash),
		standing:    immutable.NewMap[string, names](hash),
		subs:        immutable.NewMap[string, *Sub](hash),
		subsIn:      immutable.NewMap[string, names](hash),
		parentsOf:   immutable.NewMap[string, names](hash),
		tenants:     immutable.NewMap[string, *Tenant](hash),
		hierarchies: immutable.NewMap[string, *Hierarchy](hash),
	}
}

// WithRules returns the snapshot with the same facts under other rules.
func (s *Snapshot) WithRules(rules Rules) *Snapshot {
	c := *s
	c.rules = rules
	return &c
}

// Rules returns the rules that the snapshot applies.
func (s *Snapshot) Rules() Rules { return s.rules }

// WithNamespace returns the snapshot with n added or replaced.
func (s *Snapshot) WithNamespace(n *Namespace) *Snapshot {
	c := *s
	old, _ := s.namespaces.Get(n.Name)
	c.namespaces = s.namespaces.Set(n.Name, n)
	c.relinkName(n.Name, old, n)
	return &c
}

// WithoutNamespace returns the snapshot without the namespace called name.
func (s *Snapshot) WithoutNamespace(name string) *Snapshot {
	old, ok := s.namespaces.Get(name)
	if !ok {
		return s
	}
	c := *s
	c.namespaces = s.namespaces.Delete(name)
	c.relinkName(name, old, nil)
	return &c
}

// relinkName updates children, instances and standing: name had the parent, template and former root of old, and has
// those of n. Either may be nil.
func (s *Snapshot) relinkName(name string, old, n *Namespace) {
	var oldParent, oldTemplate, oldRoot, parent, template, root string
	if old != nil {
		oldParent, oldTemplate, oldRoot = old.Parent(), old.Template(), old.FormerRoot()
	}
	if n != nil {
		parent, template, root = n.Parent(), n.Template(), n.FormerRoot()
	}
	s.standing = moveLink(s.standing, name, oldRoot, root)
	s.children = moveLink(s.children, name, oldParent, parent)
	s.instances = moveLink(s.instances, name, oldTemplate, template)
}

func moveLink(m *immutable.Map[string, names], name, from, to string) *immutable.Map[string, names] {
	if from == to {
		return m
	}
	if set, ok := m.Get(from); ok && from != "" {
		if set = set.Delete(name); set.Len() == 0 {
			m = m.Delete(from)
		} else {
			m = m.Set(from, set)
		}
	}
	if to != "" {
		set, ok := m.Get(to)
		if !ok {
			set = immutable.NewSortedSet[string](nil)
		}
		m = m.Set(to, set.Add(name))
	}
	return m
}

// WithSub returns the snapshot with the SubNamespace added or replaced.
func (s *Snapshot) WithSub(sub *Sub) *Snapshot {
	c := *s
	c.subs = s.subs.Set(sub.Parent+"/"+sub.Name, sub)
	c.subsIn = moveLink(s.subsIn, sub.Name, "", sub.Parent)
	c.parentsOf = moveLink(s.parentsOf, sub.Parent, "", sub.Name)
	return &c
}

// WithoutSub returns the snapshot without the SubNamespace name in parent.
func (s *Snapshot) WithoutSub(parent, name string) *Snapshot {
	c := *s
	c.subs = s.subs.Delete(parent + "/" + name)
	c.subsIn = moveLink(s.subsIn, name, parent, "")
	c.parentsOf = moveLink(s.parentsOf, parent, name, "")
	return &c
}

// WithTenant returns the snapshot with the LNamespace added or replaced.
func (s *Snapshot) WithTenant(t *Tenant) *Snapshot {
	c := *s
	c.tenants = s.tenants.Set(t.Name, t)
	return &c
}

// WithoutTenant returns the snapshot without the LNamespace called name.
func (s *Snapshot) WithoutTenant(name string) *Snapshot {
	c := *s
	c.tenants = s.tenants.Delete(name)
	return &c
}

// WithHierarchy returns the snapshot with the HierarchyConfiguration added or replaced.
func (s *Snapshot) WithHierarchy(h *Hierarchy) *Snapshot {
	c := *s
	c.hierarchies = s.hierarchies.Set(h.Namespace, h)
	return &c
}

// WithoutHierarchy returns the snapshot without the HierarchyConfiguration of namespace.
func (s *Snapshot) WithoutHierarchy(namespace string) *Snapshot {
	c := *s
	c.hierarchies = s.hierarchies.Delete(namespace)
	return &c
}

// Namespace returns the namespace called name, or nil.
func (s *Snapshot) Namespace(name string) *Namespace {
	n, _ := s.namespaces.Get(name)
	return n
}

// Sub returns the SubNamespace name in parent, or nil.
func (s *Snapshot) Sub(parent, name string) *Sub {
	sub, _ := s.subs.Get(parent + "/" + name)
	return sub
}

// Tenant returns the LNamespace called name, or nil.
func (s *Snapshot) Tenant(name string) *Tenant {
	t, _ := s.tenants.Get(name)
	return t
}

// Hierarchy returns the HierarchyConfiguration of namespace, or nil.
func (s *Snapshot) Hierarchy(namespace string) *Hierarchy {
	h, _ := s.hierarchies.Get(namespace)
	return h
}

// Len is the number of namespaces, managed or not.
func (s *Snapshot) Len() int { return s.namespaces.Len() }

// All yields the names of all namespaces, managed or not, in no order.
func (s *Snapshot) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for it := s.namespaces.Iterator(); !it.Done(); {
			if name, _, _ := it.Next(); !yield(name) {
				return
			}
		}
	}
}

// Tenants yields all LNamespaces, in no order.
func (s *Snapshot) Tenants() iter.Seq[*Tenant] {
	return func(yield func(*Tenant) bool) {
		for it := s.tenants.Iterator(); !it.Done(); {
			if _, t, _ := it.Next(); !yield(t) {
				return
			}
		}
	}
}

// Children are the namespaces whose label parent is name, halted or not, in alphabetical order.
func (s *Snapshot) Children(name string) []string { return listNames(s.children, name) }

// Instances are the namespaces whose label template is name, whatever else their labels are, in alphabetical order.
func (s *Snapshot) Instances(name string) []string { return listNames(s.instances, name) }

// Subs are the SubNamespaces in parent, in alphabetical order.
func (s *Snapshot) Subs(parent string) []*Sub {
	var subs []*Sub
	for _, name := range listNames(s.subsIn, parent) {
		subs = append(subs, s.Sub(parent, name))
	}
	return subs
}

// SubsNamed are the SubNamespaces that want the namespace called name, by parent in alphabetical order.
func (s *Snapshot) SubsNamed(name string) []*Sub {
	var subs []*Sub
	for _, parent := range listNames(s.parentsOf, name) {
		subs = append(subs, s.Sub(parent, name))
	}
	return subs
}

func listNames(m *immutable.Map[string, names], key string) []string {
	set, ok := m.Get(key)
	if !ok {
		return nil
	}
	return set.Items()
}
