package forest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Hierarchy is what the forest knows of one HierarchyConfiguration. Its slices are never changed.
type Hierarchy struct {
	Namespace, UID string
	// Parent is spec.parent: a name, "" where a root is asked for, nil where nothing is asked for.
	Parent *string
	// ParentUID is the UID that the namespace called Parent had when the object began to ask for it. It is "" where
	// there was no such namespace, or where its UID is not known. ParentUID is not part of the object, so Is ignores
	// it.
	ParentUID      string
	AllowCascading bool
	Required       []string
	// Propagated and Overridden are keys: of labels at index 0, of annotations at index 1.
	Propagated, Overridden [2][]string
}

// Is reports whether h and other have the same fields, apart from ParentUID. Either may be nil.
func (h *Hierarchy) Is(other *Hierarchy) bool {
	if h == nil || other == nil {
		return h == other
	}
	mine, theirs := *h, *other
	mine.ParentUID, theirs.ParentUID = "", ""
	return reflect.DeepEqual(mine, theirs)
}

// Asks reports whether spec.parent of the object equals parent; nil equals only nil.
func (h *Hierarchy) Asks(parent *string) bool {
	return h.Parent == parent || h.Parent != nil && parent != nil && *h.Parent == *parent
}

// Request is the place that a HierarchyConfiguration asks for and that its namespace has not been given yet.
type Request struct {
	// Asked is false where the object asks for nothing, or where the operator has carried out the request already. From
	// then on the label parent alone decides, even if somebody has moved the namespace since.
	Asked bool
	// Parent is the parent that is asked for; "" asks for a root.
	Parent string
	// Obstacles explain why the request is not carried out.
	Obstacles []Obstacle
}

// RequestOf returns the place that the HierarchyConfiguration of the namespace called name asks for and that the
// namespace doesn't have yet, with the obstacles in this forest. It returns the zero Request if the namespace or its
// HierarchyConfiguration is missing.
func RequestOf(s *Snapshot, name string) Request {
	n, h := s.Namespace(name), s.Hierarchy(name)
	if n == nil || h == nil {
		return Request{}
	}
	applied, counts := h.appliedParent(n)
	r := Request{}
	switch {
	case h.Parent != nil:
		r.Asked, r.Parent = !counts || applied != *h.Parent, *h.Parent
	case counts && applied != "" && !n.Bound() && n.KindByLabels() != None: // the field was cleared, and the namespace was not released
		r.Asked = true
	}
	if r.Asked {
		r.Obstacles = append(MoveObstacles(s, n, r.Parent), findStale(s, n, h)...)
	}
	return r
}

// findStale returns an obstacle where h, of namespace n, asks for a namespace that has been deleted or replaced since.
// The user was allowed to ask for the first namespace, which gives no right to a later one of the same name.
func findStale(s *Snapshot, n *Namespace, h *Hierarchy) []Obstacle {
	if h.Parent == nil || h.ParentUID == "" {
		return nil
	}
	parent := s.Namespace(*h.Parent)
	switch {
	case parent == nil:
		return []Obstacle{newObstacle(v1alpha1.ReasonIllegalParent, "parent namespace %s was deleted after spec.parent named it: clear "+
			"spec.parent, then set it again", *h.Parent)}
	// Where it is unknown which namespace the user meant, a cluster admin's mark for its tree decides.
	case parent.UID == h.ParentUID || h.ParentUID == unknownParent && MarkedFor(s, n, parent.Name):
		return nil
	case h.ParentUID == unknownParent:
		return []Obstacle{newObstacle(v1alpha1.ReasonIllegalParent,
			"parent namespace %s is younger than this object, so the operator can't know "+
				"after its restart whether spec.parent means this namespace: clear spec.parent, then set it again; or a cluster admin runs "+
				"kubectl warren mark %s %s", parent.Name, n.Name, parent.Name)}
	}
	return []Obstacle{newObstacle(v1alpha1.ReasonIllegalParent,
		"parent namespace %s was created after spec.parent named it: clear spec.parent, then set it again", *h.Parent)}
}

// ExcludedBy returns a namespace whose own request, not carried out yet, excludes a request of the namespace called
// name for a place below parent. Both requests together would make a cycle. It is "" if there is no such namespace.
func ExcludedBy(s *Snapshot, name, parent string) string {
	asking := ""
	seen := map[string]bool{}
	for at := parent; at != "" && !seen[at]; {
		if at == name {
			return asking
		}
		seen[at] = true
		n := s.Namespace(at)
		switch request := RequestOf(s, at); {
		case request.Asked && request.Parent != "":
			at, asking = request.Parent, at
		case n == nil:
			return ""
		default:
			at = n.Parent()
		}
	}
	return ""
}

// Exclusion reports that the requests of two namespaces exclude each other.
func Exclusion(other, name string) string {
	return fmt.Sprintf("the HierarchyConfiguration of namespace %s waits for a place below %s: the two requests exclude each other; take "+
		"one of them back", other, name)
}

// OverruledParent returns the parent that the HierarchyConfiguration of the namespace called name asked for and was
// given, if the label parent was changed since. The label then decides.
func OverruledParent(s *Snapshot, name string) (asked string, overruled bool) {
	n, h := s.Namespace(name), s.Hierarchy(name)
	if n == nil || h == nil || h.Parent == nil || RequestOf(s, name).Asked || n.Parent() == *h.Parent {
		return "", false
	}
	return *h.Parent, true
}

// appliedParent returns the parent that the operator gave n last on behalf of h. counts is false where the record of
// that on n is missing, or was written for another HierarchyConfiguration.
func (h *Hierarchy) appliedParent(n *Namespace) (parent string, counts bool) {
	uid, parent, found := strings.Cut(n.Annotations[v1alpha1.AnnotationAppliedParent], ":")
	return parent, found && uid == h.UID
}

// asRequested returns n at the place that its HierarchyConfiguration asks for, with the record that the request was
// carried out. It returns n itself where nothing differs, or where an obstacle prevents the request.
func asRequested(s *Snapshot, n *Namespace) *Namespace {
	h, record := s.Hierarchy(n.Name), n.Annotations[v1alpha1.AnnotationAppliedParent]
	r := RequestOf(s, n.Name)
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
	setKey(moved.Annotations, v1alpha1.AnnotationAppliedParent, wanted)
	return moved
}

// standsBelow reports whether the labels of n make it a child of parent, or a root where parent is "".
func (n *Namespace) standsBelow(parent string) bool {
	return n.Parent() == parent && (parent != "" || n.Type() == v1alpha1.TypeRoot)
}

// Placed returns a copy of n that is a child of parent, or a root where parent is "".
func Placed(n *Namespace, parent string) *Namespace {
	moved := n.clone()
	delete(moved.Annotations, v1alpha1.AnnotationAdopt) // an adoption mark counts for one move
	delete(moved.Labels, v1alpha1.LabelBound)           // left from an earlier place: a SubNamespace of the new one would own n
	setKey(moved.Labels, v1alpha1.LabelParent, parent)
	if parent == "" {
		moved.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
	} else {
		delete(moved.Labels, v1alpha1.LabelType)
	}
	return moved
}

// MoveObstacles returns why no user can place n below parent, or make n a root where parent is "". It returns nil where
// n is there already.
func MoveObstacles(s *Snapshot, n *Namespace, parent string) []Obstacle {
	if n.standsBelow(parent) {
		return nil
	}
	var obstacles []Obstacle
	say := func(wrong bool, reason v1alpha1.Reason, format string, args ...any) {
		if wrong {
			obstacles = append(obstacles, newObstacle(reason, format, args...))
		}
	}
	const illegal = v1alpha1.ReasonIllegalParent
	x := n.Name
	say(s.Protected(x), illegal, "%s is a protected namespace", x)
	say(n.Terminating, illegal, "namespace %s is being terminated", x)
	say(n.Bound() && n.Parent() != "", v1alpha1.ReasonBound, "%s is bound to SubNamespace %s/%s, which owns its place: a cluster admin can "+
		"move it with kubectl warren move", x, n.Parent(), x)
	say(n.Type() == v1alpha1.TypeTemplate, illegal, "namespace %s is a template", x)
	if parent == "" {
		return obstacles
	}
	after, target := s.WithNamespace(Placed(n, parent)), s.Namespace(parent)
	cycle := ParentCycle(after, x)
	say(s.TenantOf(x) != nil, illegal, "%s belongs to LNamespace %s and stays a root: leave the parent out", x, x)
	say(n.Template() != "", illegal, "a sub-namespace can't reference a template: %s references %s", x, n.Template())
	say(s.Protected(parent), illegal, "%s is a protected namespace", parent)
	say(target != nil && target.Terminating, illegal, "parent namespace %s is being terminated", parent)
	say(s.KindOf(target) == Template, illegal, "parent namespace %s is a template", parent)
	say(cycle != "", v1alpha1.ReasonWouldCycle, "would make a cycle: %s", cycle)
	say(markedForOthers(s, n, parent), illegal, "annotation %s of namespace %s does not name the tree of %s; a cluster admin can "+
		"change it: kubectl warren mark %s %s",
		v1alpha1.AnnotationAdopt, x, parent, x, parent)
	if len(obstacles) == 0 {
		for _, why := range Crowded(after, s, x) {
			say(true, v1alpha1.ReasonLimitExceeded, "%s", why)
		}
	}
	return obstacles
}

// MarkedFor reports whether a cluster admin has marked n for the tree that parent is in. The value of the mark, the
// annotation adopt, is the UID of the tree's LNamespace or of its root.
func MarkedFor(s *Snapshot, n *Namespace, parent string) bool {
	mark, root := n.Annotations[v1alpha1.AnnotationAdopt], s.Namespace(s.RootOf(parent))
	return mark != "" && root != nil && (mark == root.UID || mark == root.TenantUID() && s.TenantOf(root.Name) != nil)
}

// markedForOthers reports whether n, which is to join the tree of parent, has an annotation adopt that names another
// tree. The value "true", which earlier versions took as a mark, names no tree and is ignored.
func markedForOthers(s *Snapshot, n *Namespace, parent string) bool {
	mark, root := n.Annotations[v1alpha1.AnnotationAdopt], s.RootOf(parent)
	return mark != "" && mark != v1alpha1.True && root != "" && root != s.RootOf(n.Name) && !MarkedFor(s, n, parent)
}

// declaredKeys returns the keys that h propagates on one side (0 labels, 1 annotations); none where h is nil.
func (h *Hierarchy) declaredKeys(side int) []string {
	if h == nil {
		return nil
	}
	return h.Propagated[side]
}

// overriddenKeys returns the keys that h overrides on one side (0 labels, 1 annotations); none where h is nil.
func (h *Hierarchy) overriddenKeys(side int) []string {
	if h == nil {
		return nil
	}
	return h.Overridden[side]
}

// declaresAs reports whether h and other propagate the same keys. Either may be nil.
func (h *Hierarchy) declaresAs(other *Hierarchy) bool {
	return slices.Equal(h.declaredKeys(0), other.declaredKeys(0)) && slices.Equal(h.declaredKeys(1), other.declaredKeys(1))
}
