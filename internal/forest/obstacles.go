package forest

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Obstacle explains why the operator can't create, adopt or move a namespace: the reason that a condition shows, and a
// sentence. The zero value is no obstacle. The sentence names what is in the way, and never its owner, whom the reader
// may not be allowed to know.
type Obstacle struct {
	Reason  v1alpha1.Reason
	Message string
}

// Exists reports whether there is an obstacle.
func (o Obstacle) Exists() bool { return o.Reason != "" }

func newObstacle(reason v1alpha1.Reason, format string, args ...any) Obstacle {
	return Obstacle{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// BoundTo reports whether n is bound to the SubNamespace of its name in parent. It is false for nil.
func (n *Namespace) BoundTo(parent string) bool {
	return n != nil && n.Bound() && n.Parent() == parent
}

// ParentObstacle returns why no namespace can be made below parent now, or no obstacle.
func ParentObstacle(s *Snapshot, parent string) Obstacle {
	p, place := s.Namespace(parent), s.Place(parent)
	switch {
	case p != nil && p.Terminating:
		return newObstacle(v1alpha1.ReasonParentTerminating, "parent namespace %s is being terminated", parent)
	case place.Halted():
		return newObstacle(v1alpha1.ReasonParentNotManaged, "parent namespace %s is halted (%s): %s", parent,
			place.Halt.Reason, place.Halt.Message)
	case !place.InTree():
		return newObstacle(v1alpha1.ReasonParentNotManaged, "parent namespace %s is neither a root nor a sub-namespace", parent)
	}
	return Obstacle{}
}

// NameObstacle returns why the SubNamespace name in parent can't have a namespace of its name. The reason is NameTaken
// where a namespace outside of the tree has the name. The SubNamespace doesn't wait for such a name: otherwise, when
// the owners of that namespace delete and create it anew, it could appear in this tree instead.
func NameObstacle(s *Snapshot, parent, name string) Obstacle {
	n := s.Namespace(name)
	switch {
	case s.Protected(name):
		return newObstacle(v1alpha1.ReasonProtectedName, "%s is a protected namespace: choose another name", name)
	case n == nil && s.rules.ReservedName != nil && s.rules.ReservedName(name):
		return newObstacle(v1alpha1.ReasonReservedName, "the configuration reserves the name %s: choose another", name)
	case n == nil:
		return Obstacle{}
	// Only a namespace of the same tree is waited for: the owners of another one may create it anew.
	case n.Terminating && (n.BoundTo(parent) || shareTree(s, parent, n)):
		return newObstacle(v1alpha1.ReasonNamespaceTerminating, "namespace %s is being terminated", name)
	case n.BoundTo(parent):
		return Obstacle{}
	case n.Parent() == parent:
		return newObstacle(v1alpha1.ReasonConflict, "namespace %s is a child of %s, but is not bound to a SubNamespace: choose another name; %s",
			name, parent, describeGraft(name, parent))
	case shareTree(s, parent, n) && n.Parent() == "":
		return newObstacle(v1alpha1.ReasonConflict, "namespace %s is the root of this tree: choose another name", name)
	case shareTree(s, parent, n):
		return newObstacle(v1alpha1.ReasonConflict, "namespace %s exists and is the child of another namespace of this tree: choose another name",
			name)
	}
	return newObstacle(v1alpha1.ReasonNameTaken, "namespace %s exists outside of this tree: choose another name; %s; %s", name,
		describeGraft(name, parent), askAgain)
}

// describeGraft is the way for a namespace that belongs to the SubNamespace of its name in parent, but has lost the
// labels by which it does.
func describeGraft(name, parent string) string {
	return "if that namespace belongs here, a cluster admin can bind it: kubectl warren graft " + name + " " + parent
}

// NameLost returns the obstacle of a SubNamespace whose name is free now, but belonged to a namespace outside of its
// tree when the SubNamespace asked for it.
func NameLost(name string) Obstacle {
	return newObstacle(v1alpha1.ReasonNameTaken, "the name %s belonged to a namespace outside of this tree; %s", name, askAgain)
}

const askAgain = "the operator tries again only when this SubNamespace is created again or its spec changes, while the name is " +
	"free"

// shareTree reports whether n is in the tree of parent, or was there before it was halted.
func shareTree(s *Snapshot, parent string, n *Namespace) bool {
	own := s.Place(parent)
	return own.InTree() && (n.Name == own.Path[0] || n.Parent() != "" && s.RootOf(n.Name) == own.Path[0])
}

// NamingObstacle returns the naming policies that the name of a new namespace below parent breaks, or no obstacle.
// parent must be in a tree.
func NamingObstacle(s *Snapshot, parent, name string) Obstacle {
	if s.rules.CheckName == nil {
		return Obstacle{}
	}
	if err := s.rules.CheckName(s.Place(parent).Path[0], name); err != nil {
		return Obstacle{v1alpha1.ReasonNamingPolicyViolated, err.Error()}
	}
	return Obstacle{}
}

// DepthObstacle returns why a new namespace below parent would be too deep, or no obstacle. parent must be in a tree.
func DepthObstacle(s *Snapshot, parent string) Obstacle {
	place := s.Place(parent)
	if why := TooDeep(s, place.Path[0], place.Depth()+1); why != "" {
		return Obstacle{v1alpha1.ReasonLimitExceeded, why}
	}
	return Obstacle{}
}

// NotAdoptable explains why the existing namespace n, which tenant doesn't own, can't become the root of tenant; "" if
// it can. A cluster admin must have marked n for the UID of this LNamespace or for its maker. And n must not be
// terminating, protected, halted, a sub-namespace or a template. The webhook and the reconciler both ask it about the
// LNamespace as it is stored.
func NotAdoptable(s *Snapshot, n *Namespace, tenant *Tenant) string {
	kind, mark := s.KindOf(n), n.Annotations[v1alpha1.AnnotationAdopt]
	switch {
	case n.Terminating:
		return "namespace " + n.Name + " is being terminated"
	// A mark without a user would let any user with a right to create LNamespaces take the namespace.
	case mark == v1alpha1.True && tenant.Creator != v1alpha1.True:
		return "namespace " + n.Name + " exists, and its annotation " + v1alpha1.AnnotationAdopt + "=true names no user; a cluster admin can " +
			"name who may adopt the namespace: " + adoptCommand(n.Name, tenant)
	case mark == "" || mark != tenant.UID && mark != tenant.describeMaker():
		return NotMarked(tenant)
	case s.rules.isProtected(n), s.Place(n.Name).Halted():
		return "namespace " + n.Name + " is protected or halted, so it can't become the root of a tenant"
	case kind == SubNamespace, kind == Template:
		return "namespace " + n.Name + " is a sub-namespace or a template, so it can't become the root of a tenant"
	}
	return ""
}

// NotMarked reports that the namespace of tenant's name exists and that no mark names the tenant. The message says
// nothing else about that namespace, which may be another user's.
func NotMarked(tenant *Tenant) string {
	return "namespace " + tenant.Name + " exists; a cluster admin can name who may adopt it: " + adoptCommand(tenant.Name, tenant)
}

// adoptCommand returns the command by which a cluster admin lets tenant adopt a namespace. The command names the
// LNamespace's maker, which stays the same if a refused LNamespace is created again. A user's name is quoted for the
// shell where necessary. With --overwrite, the command also works where the namespace is marked for another user, which
// the reader may not know.
func adoptCommand(namespace string, tenant *Tenant) string {
	user := tenant.describeMaker()
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:@/", r)
	}
	if strings.ContainsFunc(user, func(r rune) bool { return !plain(r) }) {
		user = "'" + strings.ReplaceAll(user, "'", `'\''`) + "'"
	}
	return "kubectl annotate namespace " + namespace + " " + v1alpha1.AnnotationAdopt + "=" + user + " --overwrite"
}

// HeldBy reports that the namespace called name may not be deleted, because of these children.
func HeldBy(name, children string) string {
	return fmt.Sprintf("%s has sub-namespaces (%s): delete them first or set allowCascadingDeletion in its LNamespace or "+
		"HierarchyConfiguration", name, children)
}

// WaitingFor returns the namespaces whose label parent is name; nil if a namespace called name exists.
func WaitingFor(s *Snapshot, name string) []string {
	if s.Namespace(name) != nil {
		return nil
	}
	return s.Children(name)
}

// ParentCycle returns the cycle of parents that the namespace called name is in, such as "b -> c -> b", from name back
// to name. It returns "" where name is in no cycle.
func ParentCycle(s *Snapshot, name string) string { return cycleThrough(s, name, (*Namespace).Parent) }

// TemplateCycle returns the cycle of templates that name is in, as ParentCycle does.
func TemplateCycle(s *Snapshot, name string) string {
	return cycleThrough(s, name, (*Namespace).Template)
}

func cycleThrough(s *Snapshot, name string, next func(*Namespace) string) string {
	path := []string{name}
	for n := s.Namespace(name); n != nil && next(n) != ""; n = s.Namespace(next(n)) {
		up := next(n)
		if up == name {
			return strings.Join(append(path, name), " -> ")
		}
		if slices.Contains(path, up) {
			return "" // name leads into a cycle of other namespaces, but is not in it
		}
		path = append(path, up)
	}
	return ""
}

// Named is the number of names that a message lists at most.
const Named = 5

// Few joins names for a message, in alphabetical order, and cuts the list after Named of them.
func Few(names []string) string {
	return First(slices.Sorted(slices.Values(names)), Named, ", ")
}

// First joins the first texts for a message, as many as most allows, and adds how many more there are.
func First(texts []string, most int, separator string) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}
