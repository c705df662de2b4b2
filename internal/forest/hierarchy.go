package forest

import (
	"reflect"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Hierarchy is what the forest knows of one HierarchyConfiguration. Its slices are never changed.
type Hierarchy struct {
	Namespace, UID string
	// Parent is what it asks for: a name, "" for a root, nil for nothing.
	Parent *string
	// ParentUID is the UID of the namespace called Parent at the time when the object began to ask for it; "" where there was
	// none, or nobody knows. It is no part of what the object says.
	ParentUID      string
	AllowCascading bool
	Required       []string
	// Propagated and Overridden are keys: of labels, of annotations.
	Propagated, Overridden [2][]string
}

// Is says whether both say the same. Either may be nil.
func (h *Hierarchy) Is(other *Hierarchy) bool {
	if h == nil || other == nil {
		return h == other
	}
	mine, theirs := *h, *other
	mine.ParentUID, theirs.ParentUID = "", ""
	return reflect.DeepEqual(mine, theirs)
}

// Asks says whether the object asks for that parent.
func (h *Hierarchy) Asks(parent *string) bool {
	return h.Parent == parent || h.Parent != nil && parent != nil && *h.Parent == *parent
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

// Hierarchy returns the HierarchyConfiguration of namespace, or nil.
func (s *Snapshot) Hierarchy(namespace string) *Hierarchy {
	h, _ := s.hierarchies.Get(namespace)
	return h
}

// Request is the place that a HierarchyConfiguration asks for and that its namespace was not given yet.
type Request struct {
	// Asked is false where nothing is asked, or what is asked has been carried out: then the label stands.
	Asked bool
	// Parent is the parent that is asked for; "" is none: a root.
	Parent string
	// Obstacles are why it isn't given.
	Obstacles []Obstacle
}

// Request says what the HierarchyConfiguration of the namespace called name asks for, judged by this forest.
func (s *Snapshot) Request(name string) Request {
	n, h := s.Namespace(name), s.Hierarchy(name)
	if n == nil || h == nil {
		return Request{}
	}
	applied, counts := h.appliedParent(n)
	r := Request{}
	switch {
	case h.Parent != nil:
		r.Asked, r.Parent = !counts || applied != *h.Parent, *h.Parent
	case counts && applied != "" && !n.Bound() && n.kindByLabels() != None: // the field was cleared, and not of one that was let go
		r.Asked = true
	}
	if r.Asked {
		r.Obstacles = append(s.MoveObstacles(n, r.Parent), s.staleness(h)...)
	}
	return r
}

// staleness is the obstacle where h asks for a namespace that is gone since, or that another one has replaced: whoever was asked
// for the first has no say over what comes after it.
func (s *Snapshot) staleness(h *Hierarchy) []Obstacle {
	if h.Parent == nil || h.ParentUID == "" {
		return nil
	}
	parent := s.Namespace(*h.Parent)
	switch {
	case parent == nil:
		return []Obstacle{obstacle(v1alpha1.ReasonIllegalParent, "parent namespace %s is gone since spec.parent asked for it: take spec.parent away and set it again", *h.Parent)}
	case parent.UID == h.ParentUID:
		return nil
	}
	return []Obstacle{obstacle(v1alpha1.ReasonIllegalParent, "parent namespace %s was made after spec.parent asked for it: take spec.parent away and set it again", *h.Parent)}
}

// Overruled is the parent that the HierarchyConfiguration of the namespace called name asks for and was given, where
// somebody has moved the namespace since, by its label: the label stands.
func (s *Snapshot) Overruled(name string) (asked string, overruled bool) {
	n, h := s.Namespace(name), s.Hierarchy(name)
	if n == nil || h == nil || h.Parent == nil || s.Request(name).Asked || n.Parent() == *h.Parent {
		return "", false
	}
	return *h.Parent, true
}

// appliedParent is the parent that was asked for last and given, by this very object.
func (h *Hierarchy) appliedParent(n *Namespace) (parent string, counts bool) {
	uid, parent, found := strings.Cut(n.Annotations[v1alpha1.AnnotationAppliedParent], ":")
	return parent, found && uid == h.UID
}

// asRequested is n where its HierarchyConfiguration asks it to be, with the record of that; n itself where nothing differs.
// An unlawful request changes nothing.
func (s *Snapshot) asRequested(n *Namespace) *Namespace {
	h, record := s.Hierarchy(n.Name), n.Annotations[v1alpha1.AnnotationAppliedParent]
	r := s.Request(n.Name)
	wanted := ""
	switch {
	case len(r.Obstacles) > 0:
		return n
	case h != nil && h.Parent != nil:
		wanted = h.UID + ":" + *h.Parent
	}
	if wanted == record && !r.Asked {
		return n
	}
	moved := n.clone()
	if r.Asked && !n.standsBelow(r.Parent) {
		moved = Placed(n, r.Parent)
	}
	set(moved.Annotations, v1alpha1.AnnotationAppliedParent, wanted)
	return moved
}

// standsBelow says whether the labels of n make it a child of parent, or a root where parent is "".
func (n *Namespace) standsBelow(parent string) bool {
	return n.Parent() == parent && (parent != "" || n.Type() == v1alpha1.TypeRoot)
}

// Placed is n below parent, or a root where parent is "".
func Placed(n *Namespace, parent string) *Namespace {
	moved := n.clone()
	delete(moved.Annotations, v1alpha1.AnnotationAdopt) // a mark counts once
	set(moved.Labels, v1alpha1.LabelParent, parent)
	if parent == "" {
		moved.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
	} else {
		delete(moved.Labels, v1alpha1.LabelType)
	}
	return moved
}

// MoveObstacles are why n can't be placed below parent, or be made a root where parent is "", whoever asks.
func (s *Snapshot) MoveObstacles(n *Namespace, parent string) []Obstacle {
	if n.standsBelow(parent) {
		return nil
	}
	var obstacles []Obstacle
	say := func(wrong bool, reason v1alpha1.Reason, format string, args ...any) {
		if wrong {
			obstacles = append(obstacles, obstacle(reason, format, args...))
		}
	}
	const illegal = v1alpha1.ReasonIllegalParent
	x := n.Name
	say(s.Protected(x), illegal, "%s is a protected namespace", x)
	say(n.Terminating, illegal, "namespace %s is being terminated", x)
	say(n.Bound() && n.Parent() != "", v1alpha1.ReasonBound, "%s is bound to SubNamespace %s/%s, which owns its place: a cluster admin can move it with kubectl warren sub move", x, n.Parent(), x)
	say(n.Type() == v1alpha1.TypeTemplate, illegal, "namespace %s is a template", x)
	if parent == "" {
		return obstacles
	}
	after, target := s.WithNamespace(Placed(n, parent)), s.Namespace(parent)
	cycle := after.ParentCycle(x)
	say(s.TenantOf(x) != nil, illegal, "%s belongs to LNamespace %s and stays a root", x, x)
	say(n.Template() != "", illegal, "a sub-namespace can't reference a template: %s references %s", x, n.Template())
	say(s.Protected(parent), illegal, "%s is a protected namespace", parent)
	say(target != nil && target.Terminating, illegal, "parent namespace %s is being terminated", parent)
	say(s.KindOf(target) == Template, illegal, "parent namespace %s is a template", parent)
	say(cycle != "", v1alpha1.ReasonWouldCycle, "would make a cycle: %s", cycle)
	say(s.markedForOthers(n, parent), illegal, "annotation %s of namespace %s names somebody else than the tree of %s", v1alpha1.AnnotationAdopt, x, parent)
	if len(obstacles) == 0 {
		for _, why := range after.Crowded(s, x) {
			say(true, v1alpha1.ReasonLimitExceeded, "%s", why)
		}
	}
	return obstacles
}

// MarkedFor says whether a cluster admin has marked n for the tree that parent stands in: by the UID of its LNamespace or of its
// root.
func (s *Snapshot) MarkedFor(n *Namespace, parent string) bool {
	mark, root := n.Annotations[v1alpha1.AnnotationAdopt], s.Namespace(s.RootOf(parent))
	return mark != "" && root != nil && (mark == root.UID || mark == root.TenantUID() && s.TenantOf(root.Name) != nil)
}

// markedForOthers says whether n, on its way into the tree of parent, has a mark that names somebody else. "true", which was
// the mark of earlier versions, names nobody.
func (s *Snapshot) markedForOthers(n *Namespace, parent string) bool {
	mark, root := n.Annotations[v1alpha1.AnnotationAdopt], s.RootOf(parent)
	return mark != "" && mark != v1alpha1.True && root != "" && root != s.RootOf(n.Name) && !s.MarkedFor(n, parent)
}

// declaredKeys are the keys that h propagates on one side; none where there is no h.
func (h *Hierarchy) declaredKeys(side int) []string {
	if h == nil {
		return nil
	}
	return h.Propagated[side]
}

// overriddenKeys are the keys that h overrides on one side; none where there is no h.
func (h *Hierarchy) overriddenKeys(side int) []string {
	if h == nil {
		return nil
	}
	return h.Overridden[side]
}

// declaresAs says whether both declare the same keys for those below. Either may be nil.
func (h *Hierarchy) declaresAs(other *Hierarchy) bool {
	return slices.Equal(h.declaredKeys(0), other.declaredKeys(0)) && slices.Equal(h.declaredKeys(1), other.declaredKeys(1))
}
